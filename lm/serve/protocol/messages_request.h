// Requests of /v1/messages: Anthropic's API, whose conversations become those of OpenAI's.
#pragma once

#include "lm/serve/protocol/chat_request.h"

namespace caldera::serve {

/// Reads a request of /v1/messages, or with `counts` of /v1/messages/count_tokens, which needs no
/// "max_tokens". Throws ApiError 400.
ChatRequest read_messages_request(const Json& body, const ServeLimits& limits, bool counts = false);

}  // namespace caldera::serve
