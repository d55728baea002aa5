// Guard: who may ask: pages of other sites that a browser shows.
#pragma once

#include <httplib.h>

#include <optional>
#include <string>
#include <vector>

#include "lm/serve/http/site_name.h"

namespace caldera::serve {

struct GuardOptions {
  std::string host;                  ///< the address that is listened at
  std::vector<std::string> origins;  ///< sites whose pages may ask, "https://example.org"; "*": any
};

/// The key that a request has ("Authorization: Bearer KEY", or "x-api-key: KEY"); empty where it has none.
std::string key_of(const httplib::Request& request);

/// A browser sends what any page tells it to, to this machine's own addresses as well. So a request that a
/// page made is answered where the page is this server's own or of an origin that was named; and a server
/// that listens at this machine's own address alone answers to its own names and to those of such origins
/// alone, or another site could give it one of theirs (DNS rebinding).
class Guard {
 public:
  /// Throws ValueError for an origin that is none.
  explicit Guard(GuardOptions options);

  /// Throws ApiError 403 for a request that a page of another site made, 400 for one that names several hosts
  /// or origins.
  void check_site(const httplib::Request& request) const;
  /// Sets the headers that let a page of an origin that was named read the answer.
  void allow_origin(const httplib::Request& request, httplib::Response& response) const;

 private:
  bool answers_to(const std::string& host) const;
  bool is_named(const std::string& origin) const;

  GuardOptions options_;
  bool local_ = false;  // it listens at this machine's own address alone
  bool any_ = false;    // any page may ask
  std::vector<SiteOrigin> named_;
};

}  // namespace caldera::serve
