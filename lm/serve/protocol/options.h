// CompletionOptions: what the requests of /v1/chat/completions and /v1/completions have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lm/generate/grammar/grammar_part.h"
#include "lm/generate/sampling/sampling_options.h"
#include "lm/serve/protocol/fields.h"
#include "lm/serve/protocol/limits.h"

namespace caldera::serve {

/// Says what form an answer has: one of some lists of parts. None: any.
struct OutputForm {
  std::vector<std::vector<GrammarPart>> alternatives;
  std::string param;  ///< the field that asks for it

  bool is_any() const { return alternatives.empty(); }
};

struct CompletionOptions {
  std::string model;  ///< empty: the model itself
  SamplingOptions sampling;
  /// Texts that no repetition goes across, whose tokens become the breakers of sampling.repeats; else the
  /// usual ones.
  std::optional<std::vector<std::string>> repeat_breakers;
  std::optional<std::int64_t> max_tokens;
  std::int64_t min_tokens = 0;
  /// "truncate_prompt_tokens": so many of the prompt's last tokens are taken; -1: as many as there is room
  /// for.
  std::optional<std::int64_t> last_tokens;
  std::int64_t choices = 1;  ///< "n"
  std::vector<std::string> stop;
  std::vector<std::int32_t> stop_ids;
  bool ignore_eos = false;
  bool shows_special = false;  ///< special tokens are part of the text
  bool shows_stop = false;     ///< and so is the stop string that ended it
  /// "context_shift": where the context is full, the text goes on without the first half of what stands
  /// behind so many tokens; -1: behind the prompt.
  std::optional<std::int64_t> shift_keeps;
  std::optional<std::int64_t> logprobs;  ///< how many of the most likely tokens to tell beside each
  bool stream = false;
  bool include_usage = false;  ///< a last chunk of a stream tells the usage
  OutputForm form;
};

/// The names of the fields that read_options() reads, and of those that change no text and are passed over.
const std::vector<std::string_view>& option_fields();

/// Reads what form the answer is to have: OpenAI's "response_format", vLLM's "structured_outputs" and
/// "guided_json" and its like, llama.cpp's "grammar" and "json_schema"; one of them at most. Throws ApiError
/// 400.
OutputForm read_form(const Fields& fields);

/// Reads them. Without a "seed" the seed is random. Throws ApiError 400, also for a "max_tokens" below
/// `least_tokens`.
CompletionOptions read_options(const Fields& fields, const ServeLimits& limits,
                               std::int64_t least_tokens = 1);

}  // namespace caldera::serve
