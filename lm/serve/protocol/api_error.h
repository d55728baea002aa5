// ApiError: a refusal of a request, as OpenAI's API words it.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace caldera::serve {

using Json = nlohmann::ordered_json;

/// Says what a client is told in place of an answer.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, std::string type, const std::string& message, std::string param = {},
           std::string code = {})
      : std::runtime_error(message),
        status_(status),
        type_(std::move(type)),
        param_(std::move(param)),
        code_(std::move(code)) {}

  int status() const { return status_; }
  /// Seconds after which the client may try again; 0 says nothing about it.
  int retry_after() const { return retry_after_; }
  ApiError& retry_after(int seconds) {
    retry_after_ = seconds;
    return *this;
  }
  const std::string& type() const { return type_; }
  /// The field at fault; empty where there is none.
  const std::string& param() const { return param_; }

  /// {"error": {"message", "type", "param", "code"}}.
  Json json() const;

 private:
  int status_;
  int retry_after_ = 0;
  std::string type_;
  std::string param_;
  std::string code_;
};

/// 400: the request is at fault, at the field `param`.
ApiError bad_request(const std::string& message, const std::string& param = {}, const std::string& code = {});
/// 404: nothing is served under that name.
ApiError not_found(const std::string& message, const std::string& param = {}, const std::string& code = {});
/// 429: too much work waits; try again later.
ApiError too_busy(const std::string& message);
/// 503: nothing is taken any more, or not now.
ApiError unavailable(const std::string& message);
/// 500: the server is at fault.
ApiError server_error(const std::string& message);

/// JSON text of a document. Bytes that form no character become U+FFFD.
std::string dump(const Json& document);

}  // namespace caldera::serve
