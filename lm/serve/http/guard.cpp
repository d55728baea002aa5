#include "lm/serve/http/guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.h"
#include "lm/serve/protocol/api_error.h"

namespace caldera::serve {
namespace {

// The key of "Bearer KEY", where the scheme may be written in any case (RFC 9110).
std::optional<std::string> bearer_key(const std::string& value) {
  constexpr std::string_view kScheme = "bearer ";
  if (value.size() < kScheme.size()) return std::nullopt;
  for (std::size_t i = 0; i < kScheme.size(); ++i)
    if ((value[i] | 0x20) != (kScheme[i] | 0x20)) return std::nullopt;
  const std::size_t first = value.find_first_not_of(' ', kScheme.size());
  return first == std::string::npos ? std::nullopt : std::optional(value.substr(first));
}

ApiError host_refused() {
  return {403, "permission_error", "the header Host does not name this machine", {}, "host_refused"};
}

ApiError origin_refused() {
  return {403,
          "permission_error",
          "the request comes from a page of another site; name it with --allow-origin",
          {},
          "origin_refused"};
}

/// A header that a request has once, or none.
std::optional<std::string> only(const httplib::Request& request, const char* name) {
  const std::size_t count = request.get_header_value_count(name);
  if (count == 0) return std::nullopt;
  if (count > 1) throw bad_request(fmt::format("the request has {} headers {}", count, name));
  return request.get_header_value(name);
}

}  // namespace

Guard::Guard(GuardOptions options) : options_(std::move(options)) {
  const auto host = parse_host(options_.host);
  local_ = host && is_loopback(*host);
  for (const std::string& text : options_.origins) {
    const auto origin = parse_origin(text);
    if (text == "*")
      any_ = true;
    else if (origin)
      named_.push_back(*origin);
    else if (text != "null")
      throw ValueError(fmt::format(
          "'{}' names no site whose pages may ask; write SCHEME://HOST or SCHEME://HOST:PORT, or *", text));
  }
}

bool Guard::is_named(const std::string& text) const {
  if (any_) return true;
  if (text == "null") return std::ranges::count(options_.origins, text) > 0;
  const auto origin = parse_origin(text);
  return origin && std::ranges::count(named_, *origin) > 0;
}

/// Whether requests for this host are meant for this server: a proxy in front passes on the name of its own.
bool Guard::answers_to(const std::string& host) const {
  return !local_ || is_loopback(host) ||
         std::ranges::any_of(named_, [&](const SiteOrigin& origin) { return origin.site.host == host; });
}

void Guard::check_site(const httplib::Request& request) const {
  const std::optional<std::string> host = only(request, "Host");
  const std::optional<HostPort> site = parse_host_port(host.value_or(""));
  if (host && (site ? !answers_to(site->host) : local_)) throw host_refused();
  const std::optional<std::string> text = only(request, "Origin");
  if (!text || is_named(*text)) return;
  const std::optional<SiteOrigin> origin = parse_origin(*text);
  if (!origin || !site || (origin->scheme != "http" && origin->scheme != "https")) throw origin_refused();
  // The port that Host leaves out is that of the page's scheme.
  const auto own = parse_origin(origin->scheme + "://" + *host);
  if (own != origin) throw origin_refused();
}

std::string key_of(const httplib::Request& request) {
  return bearer_key(request.get_header_value("Authorization"))
      .value_or(request.get_header_value("x-api-key"));
}

void Guard::allow_origin(const httplib::Request& request, httplib::Response& response) const {
  const std::string origin = request.get_header_value("Origin");
  if (origin.empty() || !is_named(origin) || origin.find_first_of("\r\n") != std::string::npos) return;
  response.set_header("Access-Control-Allow-Origin", origin);
  response.set_header(
      "Access-Control-Allow-Headers",
      "Authorization, Content-Type, x-api-key, x-request-id, anthropic-version, anthropic-beta");
  response.set_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  response.set_header("Vary", "Origin");
}

}  // namespace caldera::serve
