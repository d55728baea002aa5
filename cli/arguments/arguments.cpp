#include "cli/arguments/arguments.h"

#include <CLI/CLI.hpp>

#include "cli/arguments/usage_error.h"

namespace caldera::cli {

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
bool Option::given() const { return option_->count() > 0; }
std::string Option::name() const { return option_->get_name(); }

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
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return Arguments(command);
}

std::optional<std::string> ArgumentParser::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& success) {
    app_->exit(success);  // prints the help, or the version
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  return app_->get_subcommands().front()->get_name();
}

}  // namespace caldera::cli
