#include "lm/generate/decoding_options.h"

#include <fmt/format.h>

#include "engine/base/error.h"

namespace caldera {

void check_decoding(const DecodingOptions& options, std::int64_t vocabulary) {
  if (options.max_tokens < 0) throw ValueError("generate: max_tokens must not be negative");
  if (options.min_tokens < 0) throw ValueError("generate: min_tokens must not be negative");
  if (options.draft_tokens < 0) throw ValueError("generate: draft_tokens must not be negative");
  if (options.logprobs && (*options.logprobs < 0 || *options.logprobs > vocabulary))
    throw ValueError(fmt::format("generate: {} log-probabilities a token, of a vocabulary of {}",
                                 *options.logprobs, vocabulary));
  if (!options.text.stop.empty() && options.text.tokenizer == nullptr)
    throw ValueError("generate: stop strings need a tokenizer (text.tokenizer), which makes the text");
}

}  // namespace caldera
