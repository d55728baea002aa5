#include "lm/serve/protocol/embedding_request.h"

#include <bit>
#include <cstdint>
#include <string_view>
#include <variant>

namespace caldera::serve {
namespace {

std::string base64(const std::vector<float>& values) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((bits >> shift) & 0xFF);
  }
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k)
      three = (three << 8) | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kDigits[(three >> (18 - 6 * k)) & 63] : '=';
  }
  return text;
}

}  // namespace

EmbeddingRequest read_embedding_request(const Json& body, const ServeLimits& limits) {
  const Fields fields(body);
  fields.refuse_others({"input", "model", "encoding_format", "dimensions", "user"});
  EmbeddingRequest request;
  request.model = fields.text("model").value_or("");
  request.inputs = read_prompts(fields, "input", limits.max_inputs);
  for (const Prompt& input : request.inputs)
    if (std::visit([](const auto& tokens) { return tokens.empty(); }, input))
      fields.fail("input", "has an empty string or an empty list");
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") fields.fail("encoding_format", "must be float or base64");
  request.base64 = format == "base64";
  request.dimensions = fields.integer("dimensions", 1, 1 << 20);
  return request;
}

Json embedding_reply(const EmbeddingRequest& request, const std::string& model,
                     const std::vector<std::vector<float>>& vectors, std::int64_t tokens) {
  Json data = Json::array();
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    Json entry{{"object", "embedding"}, {"index", i}};
    entry["embedding"] = request.base64 ? Json(base64(vectors[i])) : Json(vectors[i]);
    data.push_back(std::move(entry));
  }
  return {{"object", "list"},
          {"data", std::move(data)},
          {"model", model},
          {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
}

}  // namespace caldera::serve
