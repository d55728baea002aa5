// EmbeddingRequest: a request of /v1/embeddings, and its answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lm/serve/protocol/completion_request.h"
#include "lm/serve/protocol/limits.h"

namespace caldera::serve {

struct EmbeddingRequest {
  std::string model;
  std::vector<Prompt> inputs;  ///< texts and lists of token ids
  bool base64 = false;         ///< vectors as the base64 of little-endian f32, not as numbers
  std::optional<std::int64_t> dimensions;
};

/// Throws ApiError 400.
EmbeddingRequest read_embedding_request(const Json& body, const ServeLimits& limits);

/// The answer: a vector a text, in order.
Json embedding_reply(const EmbeddingRequest& request, const std::string& model,
                     const std::vector<std::vector<float>>& vectors, std::int64_t tokens);

}  // namespace caldera::serve
