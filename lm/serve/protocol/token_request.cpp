#include "lm/serve/protocol/token_request.h"

#include <limits>

namespace caldera::serve {

TokenizeRequest read_tokenize_request(const Json& body, const ServeLimits& limits) {
  const Fields fields(body);
  TokenizeRequest request;
  Json rest = body;
  const bool of_vllm = !fields.has("content");
  const char* special = of_vllm ? "add_special_tokens" : "add_special";
  const char* pieces = of_vllm ? "return_token_strs" : "with_pieces";
  request.add_special = fields.flag(special).value_or(of_vllm);
  request.with_pieces = fields.flag(pieces).value_or(false);
  for (const char* name : {special, pieces}) rest.erase(name);
  if (fields.has("messages")) {
    request.chat = read_chat_request(rest, limits);
    request.model = request.chat->options.model;
    return request;
  }
  if (of_vllm)
    fields.refuse_others({"model", "prompt", special, pieces});
  else
    fields.refuse_others({"model", "content", special, pieces, "parse_special"});
  request.model = fields.text("model").value_or("");
  const auto text = fields.text(of_vllm ? "prompt" : "content");
  if (!text) fields.fail("prompt", "is missing; \"messages\" and \"content\" are taken in its place");
  request.text = *text;
  return request;
}

DetokenizeRequest read_detokenize_request(const Json& body) {
  const Fields fields(body);
  fields.refuse_others({"model", "tokens"});
  DetokenizeRequest request;
  request.model = fields.text("model").value_or("");
  const Json* tokens = fields.list("tokens", std::numeric_limits<std::size_t>::max());
  if (tokens == nullptr) fields.fail("tokens", "is missing");
  for (const Json& token : *tokens) {
    const bool is_id = token.is_number_integer() && token.get<double>() >= 0 &&
                       token.get<double>() <= std::numeric_limits<std::int32_t>::max();
    if (!is_id) fields.fail("tokens", "must list token ids");
    request.tokens.push_back(token.get<std::int32_t>());
  }
  return request;
}

}  // namespace caldera::serve
