// Guard: who may ask: the API key, and pages of other sites that a browser shows.
#pragma once

#include <httplib.h>

#include <string>
#include <vector>

namespace caldera::serve {

struct GuardOptions {
  std::string host;                  ///< the address that is listened at
  std::string api_key;               ///< empty: none is asked for
  std::vector<std::string> origins;  ///< sites whose pages may ask, "https://example.org"; "*": any
};

/// A browser sends what any page tells it to, to this machine's own addresses as well. So a request that a
/// page made is answered where the page is this server's own or of an origin that was named; and a server
/// that listens at this machine's own address alone answers to its own names alone, or another site could
/// give it one of theirs.
class Guard {
 public:
  explicit Guard(GuardOptions options) : options_(std::move(options)) {}

  /// Throws ApiError 403 for a request that a page of another site made.
  void check_site(const httplib::Request& request) const;
  /// Throws ApiError 401 without the right key ("Authorization: Bearer KEY", or "x-api-key: KEY").
  void check_key(const httplib::Request& request) const;
  /// Sets the headers that let a page of an origin that was named read the answer.
  void allow_origin(const httplib::Request& request, httplib::Response& response) const;

 private:
  bool is_named(const std::string& origin) const;

  GuardOptions options_;
};

/// Whether an address is of this machine alone: 127.x.x.x, ::1, localhost.
bool is_loopback(const std::string& host);

}  // namespace caldera::serve
