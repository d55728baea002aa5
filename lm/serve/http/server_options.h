// ServerOptions: where a server listens, and who may ask.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace caldera::serve {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  ///< 0: one that is free
  std::string api_key;
  /// Sites whose pages may ask, "https://example.org"; "*": any.
  std::vector<std::string> origins;
  /// Receives a line a request, from any thread; none: no log.
  std::function<void(const std::string& line)> log;
};

}  // namespace caldera::serve
