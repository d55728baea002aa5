// Requests of /v1/responses: OpenAI's newer API, whose items become the messages of a conversation.
#pragma once

#include "lm/serve/protocol/chat_request.h"

namespace caldera::serve {

struct ResponsesRequest {
  ChatRequest chat;
  Json told;  ///< what the answer repeats of the request, field by field
};

/// Reads a request whose items it has with it: nothing is kept between requests. Throws ApiError 400.
ResponsesRequest read_responses_request(const Json& body, const ServeLimits& limits);

}  // namespace caldera::serve
