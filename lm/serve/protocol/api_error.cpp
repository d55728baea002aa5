#include "lm/serve/protocol/api_error.h"

namespace caldera::serve {
namespace {

constexpr int kRetrySeconds = 2;

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Json ApiError::json() const {
  return {{"error",
           {{"message", what()}, {"type", type_}, {"param", or_null(param_)}, {"code", or_null(code_)}}}};
}

ApiError bad_request(const std::string& message, const std::string& param, const std::string& code) {
  return {400, "invalid_request_error", message, param, code};
}

ApiError not_found(const std::string& message, const std::string& param, const std::string& code) {
  return {404, "invalid_request_error", message, param, code};
}

ApiError too_busy(const std::string& message) {
  return ApiError(429, "rate_limit_error", message, {}, "rate_limit_exceeded").retry_after(kRetrySeconds);
}

ApiError unavailable(const std::string& message) {
  return ApiError(503, "service_unavailable_error", message, {}, "unavailable").retry_after(kRetrySeconds);
}

ApiError server_error(const std::string& message) { return {500, "server_error", message}; }

std::string dump(const Json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace caldera::serve
