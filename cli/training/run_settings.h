// The settings of a run: where they are read from, and what is written down of them in the run's folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "cli/arguments/settings_file.h"

namespace caldera::cli {

/// The settings in a run's folder.
inline constexpr const char* kSettingsFile = "run.yaml";

/// Finds the file that a command line means: that of --settings (or `config`, another name for it); or else,
/// with --resume, the one in the folder of the run that goes on. Nothing where there is none.
std::optional<std::filesystem::path> find_settings(const std::vector<std::string>& arguments,
                                                   const char* config);

/// Lists the values of all flags, given or not, but for those that say how a run begins rather than what it
/// does, and those without a value.
std::vector<Setting> settings_of(const Arguments& args);

/// Names the settings that differ, of those that change what a run computes: "--batch-size 8 (was 4)".
/// `before` is a settings file, which may be missing.
std::vector<std::string> changed_settings(const std::filesystem::path& before,
                                          const std::vector<Setting>& now);

/// Returns a line "name=value" for each setting that all processes of a run must have alike, and the version
/// of the program: paths and devices may be a machine's own.
std::vector<std::string> common_settings(const std::vector<Setting>& settings);

}  // namespace caldera::cli
