#include "lm/serve/http/guard.h"

#include <algorithm>

#include "lm/serve/protocol/api_error.h"

namespace caldera::serve {
namespace {

// "[::1]:8080" and "localhost:8080" without the port.
std::string without_port(const std::string& host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string::npos ? host : host.substr(1, end - 1);
  }
  return host.substr(0, host.find(':'));
}

// Takes the same time wherever they differ.
bool same(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^
                  static_cast<unsigned char>(b[i % std::max<std::size_t>(b.size(), 1)]);
  return difference == 0 && !b.empty();
}

}  // namespace

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.ends_with(".localhost") || host.starts_with("127.");
}

bool Guard::is_named(const std::string& origin) const {
  const auto& named = options_.origins;
  return std::find(named.begin(), named.end(), origin) != named.end() ||
         std::find(named.begin(), named.end(), "*") != named.end();
}

void Guard::check_site(const httplib::Request& request) const {
  const std::string host = request.get_header_value("Host");
  if (!host.empty() && is_loopback(options_.host) && !is_loopback(without_port(host)))
    throw ApiError(403, "permission_error", "the header Host does not name this machine", {}, "host_refused");
  const std::string origin = request.get_header_value("Origin");
  if (origin.empty() || is_named(origin)) return;
  const std::size_t scheme = origin.find("://");
  if (scheme == std::string::npos || origin.substr(scheme + 3) != host) {
    throw ApiError(403, "permission_error",
                   "the request comes from a page of another site; name it with --allow-origin", {},
                   "origin_refused");
  }
}

void Guard::check_key(const httplib::Request& request) const {
  if (options_.api_key.empty()) return;
  constexpr std::string_view kBearer = "Bearer ";
  const std::string value = request.get_header_value("Authorization");
  const std::string given =
      value.starts_with(kBearer) ? value.substr(kBearer.size()) : request.get_header_value("x-api-key");
  if (!same(given, options_.api_key)) {
    throw ApiError(401, "authentication_error",
                   given.empty() ? "an API key is asked for: send \"Authorization: Bearer KEY\""
                                 : "the API key is not the server's",
                   {}, "invalid_api_key");
  }
}

void Guard::allow_origin(const httplib::Request& request, httplib::Response& response) const {
  const std::string origin = request.get_header_value("Origin");
  if (origin.empty() || !is_named(origin) || origin.find_first_of("\r\n") != std::string::npos) return;
  response.set_header("Access-Control-Allow-Origin", origin);
  response.set_header("Access-Control-Allow-Headers", "Authorization, Content-Type");
  response.set_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  response.set_header("Vary", "Origin");
}

}  // namespace caldera::serve
