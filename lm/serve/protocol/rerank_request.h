// RerankRequest: a request of /v1/rerank, as Jina, Cohere and vLLM have it, and its answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lm/serve/protocol/fields.h"
#include "lm/serve/protocol/limits.h"

namespace caldera::serve {

struct RerankRequest {
  std::string model;
  std::string query;
  std::vector<std::string> documents;
  std::int64_t top = 0;  ///< documents that are told, the most relevant ones; 0: all
  bool returns_documents = true;
};

/// Throws ApiError 400.
RerankRequest read_rerank_request(const Json& body, const ServeLimits& limits);

/// The answer: documents by their scores, the highest first; of equals the first.
Json rerank_reply(const RerankRequest& request, const std::string& model, const std::vector<double>& scores,
                  std::int64_t tokens);

}  // namespace caldera::serve
