#include "lm/serve/http/listening.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <memory>

#include "engine/base/error.h"

namespace caldera::serve {

int bind_alone(httplib::Server& server, const std::string& host, int port) {
  // So that a server which was stopped can begin again at once; not SO_REUSEPORT. The last socket that it is
  // called for is the one that is bound.
  const auto last = std::make_shared<int>(-1);
  server.set_socket_options([last](auto socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    *last = static_cast<int>(socket);
  });
  const int bound = port == 0 ? server.bind_to_any_port(host) : server.bind_to_port(host, port) ? port : -1;
  if (bound < 0)
    throw FileError(
        fmt::format("cannot listen at {} port {}: the address is taken or not this machine's", host, port));
  // cpp-httplib lets five clients wait to be accepted: more that come at once would be seconds in coming.
  ::listen(*last, SOMAXCONN);
  return bound;
}

}  // namespace caldera::serve
