#include "lm/serve/http/site_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace caldera::serve {
namespace {

constexpr std::size_t kLongestName = 253;
constexpr std::size_t kLongestLabel = 63;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::optional<int> parse_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = error == std::errc() && end == text.data() + text.size() && is_digit(text.front());
  const bool is_plain = text.size() == 1 || text.front() != '0';
  return whole && is_plain && text.size() <= 5 && port <= 65535 ? std::optional(port) : std::nullopt;
}

std::optional<std::string> ipv6(std::string_view text) {
  in6_addr address{};
  if (inet_pton(AF_INET6, std::string(text).c_str(), &address) != 1) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> written{};
  if (inet_ntop(AF_INET6, &address, written.data(), written.size()) == nullptr) return std::nullopt;
  return std::string(written.data());
}

bool is_ipv4(std::string_view text) {
  in_addr address{};
  // inet_pton takes nothing but four decimal numbers without leading zeros.
  return inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
}

// Whether a browser takes the name for an IPv4 address: its last label is a number, of whatever base.
bool ends_in_number(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (std::ranges::all_of(last, is_digit)) return true;
  return last.size() >= 2 && last[0] == '0' && last[1] == 'x' && std::ranges::all_of(last.substr(2), is_hex);
}

std::optional<std::string> name_or_ipv4(std::string_view text) {
  std::string name = lower(text);
  if (name.ends_with('.')) name.pop_back();
  if (name.empty() || name.size() > kLongestName) return std::nullopt;
  std::size_t label = 0;
  for (const char c : name) {
    label = c == '.' ? 0 : label + 1;
    if (!(is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.')) return std::nullopt;
    if (label > kLongestLabel) return std::nullopt;
  }
  if (name.front() == '.' || name.find("..") != std::string::npos) return std::nullopt;
  if (ends_in_number(name) && !is_ipv4(name)) return std::nullopt;
  return name;
}

int port_of(std::string_view scheme) {
  if (scheme == "http") return 80;
  return scheme == "https" ? 443 : -1;
}

}  // namespace

std::optional<HostPort> parse_host_port(std::string_view text) {
  HostPort result;
  std::string_view rest;
  std::optional<std::string> host;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    host = ipv6(text.substr(1, end - 1));
    rest = text.substr(end + 1);
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    host = name_or_ipv4(text.substr(0, colon));
    rest = text.substr(colon);
  }
  if (!host) return std::nullopt;
  result.host = *std::move(host);
  if (rest.empty() || rest == ":") return result;  // an empty port is none
  if (rest.front() != ':') return std::nullopt;
  result.port = parse_port(rest.substr(1));
  return result.port ? std::optional(result) : std::nullopt;
}

std::optional<std::string> parse_host(std::string_view text) {
  if (auto address = ipv6(text)) return address;
  const auto parsed = parse_host_port(text);
  return parsed && !parsed->port ? std::optional(parsed->host) : std::nullopt;
}

std::optional<SiteOrigin> parse_origin(std::string_view text) {
  const std::size_t end = text.find("://");
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  SiteOrigin origin;
  origin.scheme = lower(text.substr(0, end));
  const auto is_of_scheme = [](char c) {
    return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
  };
  if (!is_letter(origin.scheme.front()) || !std::ranges::all_of(origin.scheme, is_of_scheme))
    return std::nullopt;
  const auto site = parse_host_port(text.substr(end + 3));
  if (!site) return std::nullopt;
  origin.site = *site;
  if (origin.site.port == port_of(origin.scheme)) origin.site.port.reset();
  return origin;
}

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host.ends_with(".localhost")) return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  if (IN6_IS_ADDR_LOOPBACK(&v6) != 0) return true;
  return IN6_IS_ADDR_V4MAPPED(&v6) != 0 && v6.s6_addr[12] == 127;
}

}  // namespace caldera::serve
