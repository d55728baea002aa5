#include "lm/formats/folders/gptq_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/formats/config/family_fields.h"

namespace caldera::detail {
namespace {

constexpr const char* kRules = "dynamic";

/// What a rule may say besides its settings: how the codes were found.
constexpr std::array<std::string_view, 8> kOfTheSearch{"sym",           "desc_act",     "act_group_aware",
                                                       "static_groups", "damp_percent", "damp_auto_increment",
                                                       "mse",           "bits"};

bool matches(const Regex& expression, const std::string& text) {
  bool found = false;
  expression.for_each_match(text, [&](const Regex::Match&) { found = true; });
  return found;
}

}  // namespace

GptqSettings read_gptq_settings(const JsonFields& options, const char* bits_name, const char* group_name,
                                const GptqSettings& otherwise) {
  const GptqSettings read{options.integer(bits_name).value_or(otherwise.bits),
                          options.integer(group_name).value_or(otherwise.group)};
  if (read.bits != 4 && read.bits != 8)
    options.fail(bits_name, fmt::format("is {}, which is not supported (supported: 4, 8)", read.bits));
  if (read.group != -1 && (read.group < 1 || read.group > 1 << 24))
    options.fail(group_name, "is out of range");
  return read;
}

GptqRules::GptqRules(const JsonFields& options, const GptqSettings& usual) : usual_(usual) {
  if (options.is_unset(kRules)) return;
  if (options.kind(kRules) != JsonKind::object) options.fail(kRules, "must be an object or null");
  const std::string where = options.where() + ": " + kRules;
  const JsonFields all = options.object(kRules, where);
  for (const std::string& name : all.names()) {
    std::string_view expression = name;
    const bool quantized = !expression.starts_with("-:");
    if (expression.starts_with("-:") || expression.starts_with("+:")) expression.remove_prefix(2);
    Rule rule{name, nullptr, quantized, usual};
    rule.expression =
        std::make_unique<Regex>(fmt::format("\\A(?:{})", expression), Regex::Syntax::pcre, where);
    if (quantized && all.has(name.c_str())) {
      if (all.kind(name.c_str()) != JsonKind::object)
        all.fail(printable(name).c_str(), "must be an object of settings");
      const std::string inner = where + ": " + printable(name);
      const JsonFields settings = all.object(name.c_str(), inner);
      for (const std::string& field : settings.names())
        if (settings.has(field.c_str()) && field != "group_size" && !is_off(*settings.find(field.c_str())) &&
            std::ranges::find(kOfTheSearch, field) == kOfTheSearch.end())
          settings.fail(printable(field).c_str(), "is not known: it may change what the weights are");
      rule.settings = read_gptq_settings(settings, "bits", "group_size", usual);
    }
    rules_.push_back(std::move(rule));
  }
}

GptqSettings GptqRules::settings_of(const std::string& module) const {
  const Rule* found = nullptr;
  for (const Rule& rule : rules_) {
    if (!matches(*rule.expression, module)) continue;
    if (found != nullptr && (found->quantized != rule.quantized || !(found->settings == rule.settings)))
      throw FileError(
          fmt::format("module {}: the rules '{}' and '{}' of quantization_config's dynamic contradict "
                      "each other",
                      printable(module), printable(found->name), printable(rule.name)));
    found = &rule;
  }
  if (found == nullptr) return usual_;
  if (!found->quantized)
    throw FileError(fmt::format("module {} has codes, though quantization_config's dynamic says '{}'",
                                printable(module), printable(found->name)));
  return found->settings;
}

}  // namespace caldera::detail
