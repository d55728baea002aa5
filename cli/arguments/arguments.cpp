#include "cli/arguments/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/arguments/settings_file.h"
#include "cli/arguments/suggestions.h"
#include "cli/arguments/usage_error.h"

namespace caldera::cli {
namespace {

/// The names of a command's options, without dashes.
std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option :
       command.get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  return names;
}

/// "; did you mean --rank?", or nothing.
std::string did_you_mean(const CLI::App& command, const std::string& name, const char* dashes) {
  const std::string meant = suggestion(name, flags_of(command));
  return meant.empty() ? "" : fmt::format("; did you mean {}{}?", dashes, meant);
}

/// Throws for the first argument that the command has no place for.
void refuse_unknown(const CLI::App& command) {
  const std::vector<std::string> unknown = command.remaining();
  if (unknown.empty()) return;
  const auto flag =
      std::ranges::find_if(unknown, [](const std::string& text) { return text.starts_with('-'); });
  if (flag == unknown.end())
    throw UsageError(fmt::format("there is no place for the argument '{}'", unknown.front()));
  const std::string name = flag->substr(0, flag->find('='));
  throw UsageError(fmt::format(
      "there is no flag {}{}", name,
      did_you_mean(command, name.substr(std::min(name.find_first_not_of('-'), name.size())), "--")));
}

/// Whether the arguments give this flag.
bool is_given(const std::vector<std::string>& arguments, const CLI::Option& option) {
  return std::ranges::any_of(option.get_lnames(), [&](const std::string& name) {
    return std::ranges::any_of(arguments, [&](const std::string& argument) {
      return argument == "--" + name || argument.starts_with("--" + name + "=");
    });
  });
}

/// Puts the settings of a file between the command's name and the flags that were given with it.
void add_settings(CLI::App& command, const ArgumentParser::FindSettings& find,
                  std::vector<std::string>& arguments) {
  const std::vector<std::string> flags(arguments.begin() + 1, arguments.end());
  const std::optional<std::filesystem::path> path = find(flags);
  if (!path) return;
  std::vector<std::string> added;
  for (const Setting& setting : read_settings(*path)) {
    CLI::Option* option = command.get_option_no_throw("--" + setting.name);
    if (option == nullptr)
      throw UsageError(fmt::format("{}:{}: there is no flag '{}'{}", path->string(), setting.line,
                                   setting.name, did_you_mean(command, setting.name, "")));
    const auto wins = [&](const CLI::Option* other) { return is_given(flags, *other); };
    if (setting.values.empty() || wins(option) || std::ranges::any_of(option->get_excludes(), wins)) continue;
    const bool is_flag = option->get_expected_max() == 0;
    if (is_flag && setting.text() != "true" && setting.text() != "false")
      throw UsageError(fmt::format("{}:{}: '{}' is true or false, not '{}'", path->string(), setting.line,
                                   setting.name, setting.text()));
    if (is_flag) {
      if (setting.text() == "true") added.push_back("--" + setting.name);
    } else if (option->get_delimiter() != '\0') {
      added.push_back(fmt::format("--{}={}", setting.name, setting.text()));
    } else {
      for (const std::string& value : setting.values)
        added.push_back(fmt::format("--{}={}", setting.name, value));
    }
  }
  arguments.insert(arguments.begin() + 1, added.begin(), added.end());
}

}  // namespace

Option Option::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}
Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}
Option Option::show_default(const std::string& text) const {
  option_->default_str(text);
  return *this;
}
Option Option::check(const Domain& domain) const {
  // Without a name: its description would repeat in every line of --help.
  option_->check(CLI::Validator([domain](std::string& text) { return domain(text); }, ""));
  return *this;
}
Option Option::changed_by(const std::function<std::string(const std::string&)>& change) const {
  option_->transform([change](std::string value) { return change(value); });
  return *this;
}

Option Option::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}
Option Option::required(bool required) const {
  option_->required(required);
  return *this;
}
Option Option::optional_value() const {
  option_->expected(0, 1);
  return *this;
}
Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}
Option Option::delimiter(char separator) const {
  option_->delimiter(separator);
  return *this;
}
Option Option::repeatable() const {
  option_->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  return *this;
}
Option Option::group(const std::string& heading) const {
  option_->group(heading);
  return *this;
}
Option Option::description(const std::string& text) const {
  option_->description(text);
  return *this;
}
std::vector<std::string> Option::values() const {
  const bool is_flag = option_->get_expected_max() == 0;
  if (is_flag) return {option_->count() > 0 && option_->as<bool>() ? "true" : "false"};
  if (option_->count() > 0) return option_->reduced_results();
  if (option_->get_default_str().empty()) option_->capture_default_str();
  std::string text = option_->get_default_str();
  std::vector<std::string> values;
  const bool is_list = text.starts_with('[') && text.ends_with(']');
  if (is_list) text = text.substr(1, text.size() - 2);
  if (is_list || option_->get_delimiter() != '\0') {
    for (std::string& value : CLI::detail::split(text, ','))
      if (!value.empty()) values.push_back(std::move(value));
  } else if (!text.empty()) {
    values.push_back(std::move(text));
  }
  return values;
}
bool Option::given() const { return option_ != nullptr && option_->count() > 0; }
std::string Option::name() const {
  const std::vector<std::string>& names = option_->get_lnames();
  return names.empty() ? option_->get_name() : "--" + names.front();
}
bool Option::is_hidden() const { return option_->get_group().empty(); }

Option Arguments::option(const std::string& name, std::string& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
Option Arguments::option(const std::string& name, int& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
Option Arguments::option(const std::string& name, std::int64_t& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
Option Arguments::option(const std::string& name, std::uint64_t& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
Option Arguments::option(const std::string& name, double& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
Option Arguments::option(const std::string& name, std::optional<std::int64_t>& value,
                         const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
Option Arguments::option(const std::string& name, std::optional<double>& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
Option Arguments::option(const std::string& name, std::vector<std::string>& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
Option Arguments::option(const std::string& name, std::vector<std::int64_t>& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
Option Arguments::flag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}
Option Arguments::hidden(const std::string& name, const std::string& help) {
  return Option(app_->add_option(name, help)->expected(0, 1)->type_name("")->group(""));
}
Arguments Arguments::one_required(const std::string& name, const std::string& help) {
  CLI::Option_group* group = app_->add_option_group(name, help);
  group->require_option(1);
  return Arguments(group);
}
Option Arguments::get(const std::string& name) const { return Option(app_->get_option(name)); }
std::vector<Option> Arguments::all() const {
  std::vector<Option> options;
  for (CLI::Option* option : app_->get_options([](const CLI::Option*) { return true; }))
    options.emplace_back(option);
  return options;
}

ArgumentParser::ArgumentParser(const std::string& description, const std::string& program,
                               const std::string& version)
    : app_(std::make_unique<CLI::App>(description, program)) {
  app_->set_version_flag("--version", version);
  app_->set_help_flag("--help,-h", "Print this help and exit");
  app_->require_subcommand(1);
}
ArgumentParser::~ArgumentParser() = default;

Arguments ArgumentParser::add_command(const std::string& name, const std::string& summary) {
  CLI::App* command = app_->add_subcommand(name, summary);
  // As argparse does: a script appends what is to differ.
  command->allow_extras();  // refuse_unknown() names them
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return Arguments(command);
}

void ArgumentParser::read_settings_of(const std::string& command, FindSettings find) {
  find_settings_[command] = std::move(find);
}

std::optional<std::string> ArgumentParser::parse(int argc, const char* const* argv) {
  std::vector<std::string> given(argv + std::min(argc, 1), argv + argc);
  const auto found = given.empty() ? find_settings_.end() : find_settings_.find(given.front());
  try {
    if (found != find_settings_.end())
      add_settings(*app_->get_subcommand(given.front()), found->second, given);
    std::ranges::reverse(given);  // as CLI11 takes them
    app_->parse(std::move(given));
    for (const CLI::App* command : app_->get_subcommands()) refuse_unknown(*command);
  } catch (const CLI::Success& success) {
    app_->exit(success);  // prints the help, or the version
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    // What is missing may be what the unknown flag meant.
    for (const CLI::App* command : app_->get_subcommands()) refuse_unknown(*command);
    throw UsageError(error.what());
  }
  return app_->get_subcommands().front()->get_name();
}

}  // namespace caldera::cli
