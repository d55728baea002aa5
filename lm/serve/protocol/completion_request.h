// CompletionRequest: a request of /v1/completions.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lm/serve/protocol/options.h"

namespace caldera::serve {

using Prompt = std::variant<std::string, std::vector<std::int32_t>>;

struct CompletionRequest {
  CompletionOptions options;
  std::vector<Prompt> prompts;
  bool echo = false;  ///< the text begins with the prompt's
};

/// Throws ApiError 400.
CompletionRequest read_completion_request(const Json& body, const ServeLimits& limits);

/// Reads a prompt or several, `most` of them: a text, a list of texts, a list of token ids, or a list of such
/// lists.
std::vector<Prompt> read_prompts(const Fields& fields, const char* name, std::size_t most);

}  // namespace caldera::serve
