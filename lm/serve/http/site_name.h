// Parses the names that browsers give sites: the header Host, and origins.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caldera::serve {

/// A host and a port, as the header Host has them. Two of the same meaning are equal.
struct HostPort {
  std::string host;         ///< in lower case, without a last point; IPv6 without brackets, in its short form
  std::optional<int> port;  ///< none: that of the scheme

  bool operator==(const HostPort&) const = default;
};

/// Parses "localhost:8080", "127.0.0.1" or "[::1]:8080". None for what is no name of a host, such as a name
/// whose last part is a number but which is no IPv4 address of four decimal numbers: a browser would write
/// that otherwise.
std::optional<HostPort> parse_host_port(std::string_view text);
/// Parses a host alone, where IPv6 may stand without brackets: what a server is told to listen at.
std::optional<std::string> parse_host(std::string_view text);

/// A site, as the header Origin names it: "https://example.org:8443".
struct SiteOrigin {
  std::string scheme;  ///< in lower case
  HostPort site;       ///< without a port that is the scheme's own

  bool operator==(const SiteOrigin&) const = default;
};

/// Parses an origin: a scheme, "://", a host and perhaps a port, and nothing more. None for anything else,
/// "null" among it.
std::optional<SiteOrigin> parse_origin(std::string_view text);

/// Whether a parsed host is of this machine alone: 127.x.x.x, ::1, localhost and names that end in
/// ".localhost". The name "127.0.0.1.example.org" is not.
bool is_loopback(const std::string& host);

}  // namespace caldera::serve
