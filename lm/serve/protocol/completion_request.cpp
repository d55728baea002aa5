#include "lm/serve/protocol/completion_request.h"

#include <fmt/format.h>

#include <limits>

namespace caldera::serve {
namespace {

constexpr const char* kForms = "must be a string, a list of strings, a list of token ids or a list of such";

std::vector<std::int32_t> read_ids(const Fields& fields, const char* name, const Json& list) {
  std::vector<std::int32_t> ids;
  ids.reserve(list.size());
  for (const Json& entry : list) {
    if (!entry.is_number_integer()) fields.fail(name, kForms);
    const double id = entry.get<double>();
    if (!(id >= 0 && id <= std::numeric_limits<std::int32_t>::max()))
      fields.fail(name, "has an id that is none");
    ids.push_back(entry.get<std::int32_t>());
  }
  return ids;
}

}  // namespace

std::vector<Prompt> read_prompts(const Fields& fields, const char* name, std::size_t most) {
  const Json* value = fields.find(name);
  if (value == nullptr) fields.fail(name, "is missing");
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array() || value->empty()) fields.fail(name, kForms);
  if (value->front().is_number()) return {read_ids(fields, name, *value)};
  if (value->size() > most) fields.fail(name, fmt::format("has {} entries, at most {}", value->size(), most));
  std::vector<Prompt> prompts;
  for (const Json& entry : *value) {
    if (entry.is_string()) {
      prompts.emplace_back(entry.get<std::string>());
    } else if (entry.is_array()) {
      prompts.emplace_back(read_ids(fields, name, entry));
    } else {
      fields.fail(name, kForms);
    }
  }
  return prompts;
}

CompletionRequest read_completion_request(const Json& body, const ServeLimits& limits) {
  const Fields fields(body);
  std::vector<std::string_view> known = option_fields();
  known.insert(known.end(), {"prompt", "echo", "best_of", "suffix"});
  fields.refuse_others(known);

  CompletionRequest request;
  request.options = read_options(fields, limits, 0);
  if (!request.options.max_tokens) request.options.max_tokens = 16;  // OpenAI's default here
  if (const auto top = fields.integer("logprobs", 0, 20)) request.options.logprobs = *top;
  if (const auto best = fields.integer("best_of", 1, limits.max_choices);
      best && *best != request.options.choices)
    fields.fail("best_of", "must equal 'n': choices are not ranked");
  if (!fields.text("suffix").value_or("").empty()) fields.fail("suffix", "is not supported");
  request.prompts = read_prompts(fields, "prompt", limits.max_prompts);
  request.echo = fields.flag("echo").value_or(false);
  const auto sequences = static_cast<std::int64_t>(request.prompts.size()) * request.options.choices;
  if (sequences > limits.max_choices * 4)
    fields.fail("n",
                fmt::format("times the prompts are {} texts, at most {}", sequences, limits.max_choices * 4));
  return request;
}

}  // namespace caldera::serve
