#include "lm/serve/protocol/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>

namespace caldera::serve {
namespace {

// The first tokens draw much attention whatever they are: texts without them go astray (Xiao et al. 2023).
constexpr std::int64_t kShiftKeeps = 4;
constexpr std::int64_t kMostIds = std::numeric_limits<std::int32_t>::max();

// {"50256": -100}.
std::vector<std::pair<std::int32_t, float>> read_bias(const Fields& fields, const ServeLimits& limits) {
  std::vector<std::pair<std::int32_t, float>> result;
  const Json* map = fields.object("logit_bias");
  if (map == nullptr) return result;
  if (map->size() > limits.max_bias)
    fields.fail("logit_bias", fmt::format("has {} entries, at most {}", map->size(), limits.max_bias));
  for (const auto& [key, value] : map->items()) {
    std::int32_t id = 0;
    const char* end = key.data() + key.size();
    const auto [stopped, error] = std::from_chars(key.data(), end, id);
    if (error != std::errc() || stopped != end || id < 0)
      fields.fail("logit_bias", "must map token ids to numbers");
    if (!value.is_number() || !(value.get<double>() >= -100 && value.get<double>() <= 100))
      fields.fail("logit_bias", "must map token ids to numbers in -100 to 100");
    result.emplace_back(id, value.get<float>());
  }
  return result;
}

std::uint64_t read_seed(const Fields& fields) {
  constexpr auto kLow = std::numeric_limits<std::int64_t>::min();
  constexpr auto kHigh = std::numeric_limits<std::int64_t>::max();
  if (const auto seed = fields.integer("seed", kLow, kHigh)) return static_cast<std::uint64_t>(*seed);
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

SamplingOptions read_sampling(const Fields& fields, const ServeLimits& limits) {
  SamplingOptions options = limits.sampling;
  options.temperature = fields.number("temperature", 0, 100).value_or(options.temperature);
  if (const auto top_k = fields.integer("top_k", -1, kMostIds))
    options.top_k = std::max<std::int64_t>(*top_k, 0);
  options.top_p = fields.number("top_p", 0, 1).value_or(options.top_p);
  if (options.top_p == 0) options.top_k = 1;  // OpenAI's domain has 0: the most likely token
  if (options.top_p == 0) options.top_p = 1;
  options.min_p = fields.number("min_p", 0, 1).value_or(options.min_p);
  options.typical_p = fields.number("typical_p", 1e-6, 1).value_or(1);
  options.repetition_penalty =
      fields.number("repetition_penalty", 1e-3, 100).value_or(options.repetition_penalty);
  options.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
  options.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
  options.logit_bias = read_bias(fields, limits);
  RepeatPenalty& repeats = options.repeats;
  repeats.multiplier = fields.number("dry_multiplier", 0, 100).value_or(0);
  repeats.base = fields.number("dry_base", 1, 100).value_or(repeats.base);
  repeats.allowed_length = fields.integer("dry_allowed_length", 1, kMostIds).value_or(repeats.allowed_length);
  repeats.last = fields.integer("dry_penalty_last_n", -1, kMostIds).value_or(repeats.last);
  options.xtc_probability = fields.number("xtc_probability", 0, 1).value_or(0);
  options.xtc_threshold = fields.number("xtc_threshold", 0, 1).value_or(options.xtc_threshold);
  Mirostat& mirostat = options.mirostat;
  const std::int64_t version = fields.integer("mirostat", 0, 2).value_or(mirostat.on ? 2 : 0);
  if (version == 1) fields.fail("mirostat", "must be 0 (off) or 2: there is its second version alone");
  mirostat.on = version == 2;
  mirostat.tau = fields.number("mirostat_tau", 0, 100).value_or(mirostat.tau);
  mirostat.eta = fields.number("mirostat_eta", 0, 1).value_or(mirostat.eta);
  options.seed = read_seed(fields);
  return options;
}

std::vector<std::int32_t> read_stop_ids(const Fields& fields, const ServeLimits& limits) {
  std::vector<std::int32_t> ids;
  const Json* list = fields.list("stop_token_ids", limits.max_stops);
  if (list == nullptr) return ids;
  for (const Json& entry : *list) {
    if (!entry.is_number_integer() || entry.get<double>() < 0 ||
        entry.get<double>() > static_cast<double>(kMostIds))
      fields.fail("stop_token_ids", "must list token ids");
    ids.push_back(entry.get<std::int32_t>());
  }
  return ids;
}

}  // namespace

const std::vector<std::string_view>& option_fields() {
  static const std::vector<std::string_view> kNames{
      "model", "temperature", "top_p", "top_k", "min_p", "typical_p", "repetition_penalty",
      "presence_penalty", "frequency_penalty", "logit_bias", "seed", "max_tokens", "n", "stop",
      "stop_token_ids", "ignore_eos", "logprobs", "stream", "stream_options", "min_tokens", "dry_multiplier",
      "dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers", "xtc_probability",
      "xtc_threshold", "mirostat", "mirostat_tau", "mirostat_eta", "truncate_prompt_tokens",
      "skip_special_tokens", "include_stop_str_in_output", "context_shift", "n_keep", "response_format",
      "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "grammar",
      "json_schema",
      // These say who asks, or how the answer is to be billed or kept.
      "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
      "prompt_cache_retention",
      // Of vLLM's tokenizers in Python; there is no other answer than its default's.
      "spaces_between_special_tokens"};
  return kNames;
}

CompletionOptions read_options(const Fields& fields, const ServeLimits& limits, std::int64_t least_tokens) {
  CompletionOptions options;
  options.model = fields.text("model").value_or("");
  options.sampling = read_sampling(fields, limits);
  options.max_tokens = fields.integer("max_tokens", least_tokens, limits.max_tokens);
  options.min_tokens =
      fields.integer("min_tokens", 0, options.max_tokens.value_or(limits.max_tokens)).value_or(0);
  options.last_tokens = fields.integer("truncate_prompt_tokens", -1, limits.max_tokens);
  if (options.last_tokens == 0) fields.fail("truncate_prompt_tokens", "must be -1, or 1 or more");
  if (fields.has("dry_sequence_breakers"))
    options.repeat_breakers = fields.texts("dry_sequence_breakers", limits.max_stops, limits.max_stop_bytes);
  options.choices = fields.integer("n", 1, limits.max_choices).value_or(1);
  options.stop = fields.texts("stop", limits.max_stops, limits.max_stop_bytes);
  options.stop_ids = read_stop_ids(fields, limits);
  options.ignore_eos = fields.flag("ignore_eos").value_or(false);
  options.shows_special = !fields.flag("skip_special_tokens").value_or(true);
  options.shows_stop = fields.flag("include_stop_str_in_output").value_or(false);
  const auto kept = fields.integer("n_keep", -1, limits.max_tokens);
  if (fields.flag("context_shift").value_or(false))
    options.shift_keeps = kept.value_or(kShiftKeeps);
  else if (kept)
    fields.fail("n_keep", "needs \"context_shift\": true");
  options.stream = fields.flag("stream").value_or(false);
  if (const Json* stream = fields.object("stream_options")) {
    if (!options.stream) fields.fail("stream_options", "needs \"stream\": true");
    options.include_usage = Fields(*stream, "stream_options.").flag("include_usage").value_or(false);
  }
  options.form = read_form(fields);
  return options;
}

}  // namespace caldera::serve
