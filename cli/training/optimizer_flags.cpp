#include "cli/training/optimizer_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "cli/arguments/domains.h"
#include "cli/arguments/usage_error.h"
#include "training/optim/registry.h"

namespace caldera::cli {
namespace {

/// A finite number, not negative; nothing for another text.
std::optional<double> rate_in(std::string_view text) {
  double value = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool ok =
      error == std::errc() && stopped == text.data() + text.size() && std::isfinite(value) && value >= 0;
  return ok ? std::optional(value) : std::nullopt;
}

/// "PATTERN:learning-rate=2,weight-decay=0". The pattern may hold colons.
ParameterGroup parse_group(const std::string& text) {
  const auto fail = [&](const std::string& problem) {
    throw UsageError(fmt::format(
        "--parameter-group '{}': {}; want 'PATTERN:learning-rate=FACTOR,weight-decay=W', or one of the two",
        text, problem));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) fail("there is no pattern before a colon");
  ParameterGroup group{.pattern = text.substr(0, colon)};
  std::string_view rest = std::string_view(text).substr(colon + 1);
  while (true) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    const auto value = equals == std::string_view::npos ? std::nullopt : rate_in(item.substr(equals + 1));
    if (!value) fail(fmt::format("'{}' gives no number", item));
    if (name == "learning-rate")
      group.learning_rate_factor = *value;
    else if (name == "weight-decay")
      group.weight_decay = *value;
    else
      fail(fmt::format("there is no '{}'", name));
    if (item.size() == rest.size()) return group;
    rest.remove_prefix(item.size() + 1);
  }
}

}  // namespace

void OptimizerFlags::declare(Arguments& args, TrainOptions& options) {
  const std::int64_t most = std::int64_t{1} << 40;
  args.option("--learning-rate", options.optimizer.learning_rate, "Learning rate, the schedule's peak")
      .type_name("R")
      .check(positive_number())
      .show_default(fmt::format("{}", options.optimizer.learning_rate.value()));
  args.option("--schedule", schedule_, "Learning rate over time; all but constant fall to --schedule-end")
      .one_of(schedule_names())
      .type_name("S")
      .show_default();
  args.option("--warmup", warmup_,
              "Steps in which the learning rate rises from 0; below 1, a share of all steps")
      .type_name("N")
      .check(non_negative_number())
      .show_default();
  args.option("--schedule-end", options.schedule_shape.end, "The last rate, as a share of the peak")
      .type_name("SHARE")
      .check(number_in(0, 1))
      .show_default();
  args.option("--schedule-power", options.schedule_shape.power, "Power of polynomial")
      .type_name("P")
      .check(positive_number())
      .show_default();
  args.option("--schedule-cycles", options.schedule_shape.cycles, "Cycles of cosine_with_restarts")
      .type_name("N")
      .check(integer_in(1, most))
      .show_default();
  args.option("--schedule-decay", options.schedule_shape.decay, "Share of all steps in which wsd falls")
      .type_name("SHARE")
      .check(number_in(0, 1, /*open_low=*/true))
      .show_default();
  args.option("--optimizer", options.optimizer.name, "What updates the parameters")
      .one_of(optimizer_names())
      .type_name("NAME")
      .show_default();
  args.option("--optimizer-option", optimizer_options_,
              "A number of the optimizer's own, such as beta2=0.95; repeatable")
      .type_name("NAME=R")
      .repeatable();
  args.option("--weight-decay", options.optimizer.weight_decay,
              "Weight decay (default: the optimizer's own; 0.01 of adamw)")
      .type_name("R")
      .check(non_negative_number());
  args.option("--parameter-group", groups_,
              "Other rates for parameters whose names have the pattern: 'norm|bias:weight-decay=0', "
              "'lora_B:learning-rate=16' (a factor); repeatable, the first that fits counts")
      .type_name("PATTERN:RATES")
      .repeatable();
  args.option("--max-grad-norm", options.max_grad_norm, "Clip the gradients' global norm; 0 is off")
      .type_name("R")
      .check(non_negative_number())
      .show_default();
  args.option("--max-grad-value", options.max_grad_value,
              "Clip each element of the gradients, before that; 0 is off")
      .type_name("R")
      .check(non_negative_number())
      .show_default();
  args.option("--ema", options.ema_decay,
              "Validate and save a moving average of what is trained, with this decay (0.99); 0 is off")
      .type_name("DECAY")
      .check(number_in(0, 1, false, /*open_high=*/true))
      .show_default();
}

void OptimizerFlags::declare_lora_plus(Arguments& args) {
  args.option("--lora-plus-ratio", lora_plus_ratio_,
              "LoRA+: B learns so many times as fast as A; its paper advises 16")
      .type_name("R")
      .check(positive_number())
      .show_default();
}

void OptimizerFlags::apply(TrainOptions& options) const {
  options.schedule = parse_schedule(schedule_);
  for (const std::string& text : optimizer_options_) {
    const std::size_t equals = text.find('=');
    double value = 0;
    const char* end = text.data() + text.size();
    const bool ok = equals != std::string::npos && equals > 0 &&
                    std::from_chars(text.data() + equals + 1, end, value).ptr == end &&
                    equals + 1 < text.size();
    if (!ok) throw UsageError(fmt::format("--optimizer-option '{}': want NAME=NUMBER", text));
    options.optimizer.more[text.substr(0, equals)] = value;
  }
  for (const std::string& text : groups_) options.optimizer.groups.push_back(parse_group(text));
  if (lora_plus_ratio_ != 1)
    options.optimizer.groups.push_back({.pattern = "lora_B", .learning_rate_factor = lora_plus_ratio_});
}

void OptimizerFlags::apply_warmup(TrainOptions& options) const {
  const double steps = rate_in(warmup_).value_or(0);
  if (steps >= 1 && steps != std::floor(steps))
    throw UsageError(
        fmt::format("--warmup {}: neither a whole number of steps nor a share below 1", warmup_));
  options.warmup = static_cast<std::int64_t>(
      steps < 1 ? std::ceil(steps * static_cast<double>(options.iterations)) : steps);
}

}  // namespace caldera::cli
