// Arguments: the options of a command, and the parser of the command line. CLI11 does the work, in
// arguments.cpp alone: its headers cost seconds in each file that includes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's own
class App;
class Option;
}  // namespace CLI

namespace caldera::cli {

/// A check of a value as it was written: an error message, or nothing.
using Domain = std::function<std::string(const std::string&)>;

/// A handle to a declared option; it stays valid while the parser lives. The setters return it, for chains.
class Option {
 public:
  Option() = default;
  explicit Option(CLI::Option* option) : option_(option) {}

  /// Sets what --help calls the value: "N", "DIR".
  Option type_name(const std::string& name) const;
  /// Makes --help show the variable's present value, or this text, as the default.
  Option show_default() const;
  Option show_default(const std::string& text) const;
  Option check(const Domain& domain) const;
  /// Puts what a function makes of a value in its place.
  Option changed_by(const std::function<std::string(const std::string&)>& change) const;
  /// Refuses any other value.
  Option one_of(const std::vector<std::string>& values) const;
  Option required(bool required = true) const;
  /// Lets the option stand without a value.
  Option optional_value() const;
  /// Refuses both options together.
  Option excludes(Option other) const;
  /// Splits a value into a list at this character.
  Option delimiter(char separator) const;
  /// Keeps the value of each time that the option of a list is given, one each, not the last alone.
  Option repeatable() const;
  /// Puts the option under this heading of --help.
  Option group(const std::string& heading) const;
  Option description(const std::string& text) const;

  /// Tells whether the option was given, once the command line is parsed.
  bool given() const;
  /// Returns what was given, or else the default, as text; several values of a list. "true" or "false" of a
  /// flag; nothing where there is neither.
  std::vector<std::string> values() const;
  /// "--seed".
  std::string name() const;
  /// Tells whether --help leaves the option out.
  bool is_hidden() const;

  bool operator==(const Option&) const = default;

 private:
  CLI::Option* option_ = nullptr;
};

/// The options of one command. A variable that an option is bound to keeps its value where the option is not
/// given; it must outlive the parser. An option given twice takes the last value.
class Arguments {
 public:
  Arguments() = default;
  explicit Arguments(CLI::App* app) : app_(app) {}

  Option option(const std::string& name, std::string& value, const std::string& help);
  Option option(const std::string& name, int& value, const std::string& help);
  Option option(const std::string& name, std::int64_t& value, const std::string& help);
  Option option(const std::string& name, std::uint64_t& value, const std::string& help);
  Option option(const std::string& name, double& value, const std::string& help);
  Option option(const std::string& name, std::optional<std::int64_t>& value, const std::string& help);
  Option option(const std::string& name, std::optional<double>& value, const std::string& help);
  Option option(const std::string& name, std::vector<std::string>& value, const std::string& help);
  Option option(const std::string& name, std::vector<std::int64_t>& value, const std::string& help);
  Option flag(const std::string& name, bool& value, const std::string& help);
  /// Declares an option that --help does not show, with or without a value: the command refuses it with a
  /// message of its own.
  Option hidden(const std::string& name, const std::string& help);
  /// Makes a group of options of which exactly one must be given.
  Arguments one_required(const std::string& name, const std::string& help);

  /// Finds a declared option by its name.
  Option get(const std::string& name) const;
  /// Lists all options declared so far, in order.
  std::vector<Option> all() const;

 private:
  CLI::App* app_ = nullptr;
};

/// The command line of the program: commands, each with options of its own.
class ArgumentParser {
 public:
  ArgumentParser(const std::string& description, const std::string& program, const std::string& version);
  ~ArgumentParser();
  ArgumentParser(const ArgumentParser&) = delete;
  ArgumentParser& operator=(const ArgumentParser&) = delete;

  Arguments add_command(const std::string& name, const std::string& summary);
  /// Finds the file with the settings of a command, in the arguments after its name.
  using FindSettings = std::function<std::optional<std::filesystem::path>(const std::vector<std::string>&)>;
  /// Lets a command read flags from a file (settings_file.h): those that are given, and those that exclude
  /// them, win.
  void read_settings_of(const std::string& command, FindSettings find);

  /// The name of the command that was given, with its variables set; nothing where --help or --version was
  /// asked for and has been answered. Throws UsageError, which suggests what a flag that there is not may
  /// have meant.
  std::optional<std::string> parse(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
  std::map<std::string, FindSettings> find_settings_;
};

}  // namespace caldera::cli
