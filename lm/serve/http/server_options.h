// ServerOptions: where a server listens, and who may ask.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace caldera::serve {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  ///< 0: one that is free
  std::string api_key;
  std::filesystem::path api_keys;  ///< a file of keys and their limits (see KeyRing); empty: none
  /// A chain of certificates and their key, PEM: connections are encrypted. Empty: they are not.
  std::filesystem::path tls_certificate, tls_key;
  bool adapter_updates = false;  ///< requests may load and unload adapters
  bool json_log = false;         ///< lines of the log are JSON
  /// Sites whose pages may ask, "https://example.org"; "*": any.
  std::vector<std::string> origins;
  /// Receives a line a request, from any thread; none: no log.
  std::function<void(const std::string& line)> log;
};

}  // namespace caldera::serve
