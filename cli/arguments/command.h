// Command: the base of every command of the program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/arguments.h"
#include "cli/arguments/usage_error.h"
#include "engine/tensor/device.h"

namespace caldera::cli {

/// One command. The program makes all of them, lets each declare its options, and runs the one that was asked
/// for.
class Command {
 public:
  Command(std::string name, std::string summary) : name_(std::move(name)), summary_(std::move(summary)) {}
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  const std::string& name() const { return name_; }
  const std::string& summary() const { return summary_; }

  /// Finds the file that gives flags besides the command line, whose arguments after the command's name are
  /// `arguments`; nothing where there is none.
  virtual std::optional<std::filesystem::path> settings_file(
      const std::vector<std::string>& arguments) const {
    static_cast<void>(arguments);
    return std::nullopt;
  }

  /// Adds the command's options and those that all commands have.
  void declare(Arguments& args);
  /// Refuses what this version lacks, then runs.
  void execute();

 protected:
  virtual void add_options(Arguments& args) = 0;
  virtual void run() = 0;

  /// Declares a flag of the documented surface that this version does not support: given, it ends the command
  /// with a line that says so. A flag is never ignored.
  void add_refused(Arguments& args, const std::string& flag);

  /// Declares --memory-limit, which open_device() obeys.
  void add_memory_limit(Arguments& args);

  bool json() const { return json_; }
  /// Whether --device was given.
  bool device_given() const { return !device_.empty(); }
  /// The device of choose_device(). Opens it, so that a device that is
  /// missing or broken is known before any work, makes it the default one, and sets its --memory-limit.
  /// Throws UsageError for a name that is none, and for a limit that is none.
  Device open_device() const;
  /// The device of choose_device(), opened for a survey (engine/runtime/survey.h): nothing is computed on it.
  /// Throws UsageError for a name that is none.
  Device open_survey() const;
  /// Prints the one JSON document of the command.
  static void print_json(const nlohmann::ordered_json& document);
  /// A line on standard error.
  void note(const std::string& line) const;

 private:
  std::string name_;
  std::string summary_;
  std::string device_;
  std::string memory_limit_;
  Option memory_limit_option_;
  bool json_ = false;
  std::optional<std::int64_t> threads_;
  std::vector<std::pair<std::string, Option>> refused_;
};

using CommandPtr = std::unique_ptr<Command>;

}  // namespace caldera::cli
