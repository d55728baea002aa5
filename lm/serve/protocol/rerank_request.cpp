#include "lm/serve/protocol/rerank_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace caldera::serve {

RerankRequest read_rerank_request(const Json& body, const ServeLimits& limits) {
  const Fields fields(body);
  fields.refuse_others({"model", "query", "documents", "top_n", "return_documents", "user"});
  RerankRequest request;
  request.model = fields.text("model").value_or("");
  const auto query = fields.text("query");
  if (!query || query->empty()) fields.fail("query", "is missing");
  request.query = *query;
  const Json* documents = fields.list("documents", limits.max_inputs - 1);
  if (documents == nullptr || documents->empty()) fields.fail("documents", "must list at least one text");
  for (std::size_t i = 0; i < documents->size(); ++i) {
    const Json& entry = (*documents)[i];
    if (entry.is_string()) {
      request.documents.push_back(entry.get<std::string>());
      continue;
    }
    const std::string path = fmt::format("documents[{}]", i);
    if (!entry.is_object())
      throw bad_request(fmt::format("'{}' must be a text, or have one as 'text'", path), path);
    const auto text = Fields(entry, path + ".").text("text");
    if (!text) throw bad_request(fmt::format("'{}.text' is missing", path), path + ".text");
    request.documents.push_back(*text);
  }
  request.top = fields.integer("top_n", 1, 1 << 30).value_or(0);
  request.returns_documents = fields.flag("return_documents").value_or(true);
  return request;
}

Json rerank_reply(const RerankRequest& request, const std::string& model, const std::vector<double>& scores,
                  std::int64_t tokens) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  if (request.top > 0) order.resize(std::min(order.size(), static_cast<std::size_t>(request.top)));
  Json results = Json::array();
  for (const std::size_t i : order) {
    Json result{{"index", i}, {"relevance_score", scores[i]}};
    if (request.returns_documents) result["document"] = {{"text", request.documents[i]}};
    results.push_back(std::move(result));
  }
  return {{"object", "list"},
          {"model", model},
          {"results", std::move(results)},
          {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
}

}  // namespace caldera::serve
