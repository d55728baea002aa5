// Requests of /tokenize and /detokenize, as vLLM and llama.cpp have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lm/serve/protocol/chat_request.h"

namespace caldera::serve {

struct TokenizeRequest {
  std::string model;
  std::string text;                 ///< where there is no conversation
  std::optional<ChatRequest> chat;  ///< whose prompt is to be divided
  bool add_special = true;          ///< also the special tokens around a text
  bool with_pieces = false;         ///< the tokens' texts as well
};

/// Reads {"prompt"} or {"messages"} as vLLM has it, or {"content"} as llama.cpp. Throws ApiError 400.
TokenizeRequest read_tokenize_request(const Json& body, const ServeLimits& limits);

struct DetokenizeRequest {
  std::string model;
  std::vector<std::int32_t> tokens;
};

/// Reads {"tokens"}. Throws ApiError 400.
DetokenizeRequest read_detokenize_request(const Json& body);

}  // namespace caldera::serve
