// Peer: the socket of a request, which cpp-httplib does not hand out, to see whether the client has left.
#pragma once

#include <string>

namespace caldera::serve {

/// The connection between two ports of this process's sockets. Lives no longer than its request.
class Peer {
 public:
  /// Finds the socket whose other end is this address and port, and whose own port is `local_port`.
  Peer(const std::string& address, int port, int local_port);

  /// Whether the client has closed the connection, or its side of it.
  bool left() const;
  /// Takes no more of what the client sends: the connection ends after the answer.
  void stop_reading() const;

 private:
  int socket_ = -1;  // -1: not found, then the client never seems to have left
};

}  // namespace caldera::serve
