// SettingsFile: flags in a YAML file, under their names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace caldera::cli {

/// One entry of the file: "learning-rate: 1e-4".
struct Setting {
  std::string name;                 ///< with "-", however the file writes it
  std::vector<std::string> values;  ///< one, or those of a list; none where the file has null
  int line = 0;                     ///< counts from 1
  std::string text() const;         ///< the values, joined by ","

  bool operator==(const Setting& other) const { return name == other.name && values == other.values; }
};

/// Reads a file of one map from names to scalars or lists of scalars, in the file's order. Throws UsageError,
/// "FILE:LINE: ...", for text that is not YAML, anything deeper, and a name that is there twice; FileError
/// for a file that cannot be read.
std::vector<Setting> read_settings(const std::filesystem::path& path);

/// Writes such a file's text; what lists of one value were is not told apart from scalars.
std::string write_settings(const std::vector<Setting>& settings, const std::string& comment);

}  // namespace caldera::cli
