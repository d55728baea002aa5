// Requests of Ollama's API: /api/chat and /api/generate.
#pragma once

#include <string>
#include <variant>

#include "lm/serve/protocol/chat_request.h"
#include "lm/serve/protocol/completion_request.h"

namespace caldera::serve {

struct OllamaRequest {
  /// Nothing to say: such a request asks whether the model is loaded.
  std::variant<std::monostate, ChatRequest, CompletionRequest> asked;
  std::string model;
  bool chat = true;  ///< of /api/chat, not /api/generate
  bool stream = true;
};

/// Read a request. Throw ApiError 400.
OllamaRequest read_ollama_chat(const Json& body, const ServeLimits& limits);
OllamaRequest read_ollama_generate(const Json& body, const ServeLimits& limits);

}  // namespace caldera::serve
