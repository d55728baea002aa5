#include "cli/arguments/objective_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/arguments/usage_error.h"
#include "training/objectives/registry.h"

namespace caldera::cli {
namespace {

std::string flag_name(const std::string& option) {
  std::string flag = "--" + option;
  std::ranges::replace(flag, '_', '-');
  return flag;
}

// "dpo 0.1, orpo 0.1": what the objectives that have it take where it is not given.
std::string defaults_of(const std::string& option) {
  std::string text;
  for (const std::string& objective : objective_names())
    for (const ObjectiveOption& own : options_of_objective(objective)) {
      if (own.name != option) continue;
      text += fmt::format("{}{}", text.empty() ? "" : ", ", objective);
      if (own.kind == ObjectiveOption::Kind::number) text += fmt::format(" {}", own.otherwise);
      if (own.kind == ObjectiveOption::Kind::word) text += fmt::format(" {}", own.words.front());
    }
  return text;
}

}  // namespace

void ObjectiveFlags::declare(Arguments& args) {
  args.option("--objective", name_, "What is minimised; of data and models it says what they must have")
      .one_of(objective_names())
      .type_name("NAME")
      .show_default();
  for (const std::string& objective : objective_names())
    for (const ObjectiveOption& option : options_of_objective(objective)) {
      if (numbers_.contains(option.name) || words_.contains(option.name)) continue;
      const std::string help = fmt::format("{} ({})", option.help, defaults_of(option.name));
      if (option.kind == ObjectiveOption::Kind::number) {
        args.option(flag_name(option.name), numbers_[option.name], help)
            .type_name(option.whole ? "N" : "R")
            .group("Options of objectives");
        continue;
      }
      const Option flag = args.option(flag_name(option.name), words_[option.name], help)
                              .type_name(option.words.empty() ? "TEXT" : "NAME")
                              .group("Options of objectives");
      if (!option.words.empty()) flag.one_of(option.words);
    }
}

ObjectiveOptions ObjectiveFlags::options() const {
  ObjectiveOptions options{.name = name_, .more = {}, .words = {}};
  for (const auto& [option, value] : numbers_)
    if (value) options.more[option] = *value;
  for (const auto& [option, value] : words_)
    if (!value.empty()) options.words[option] = value;
  try {
    make_objective(options);
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("--objective {}", error.what()));
  }
  return options;
}

}  // namespace caldera::cli
