#include "lm/serve/http/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

namespace caldera::serve {
namespace {

// What select() can wait for, so no connection of the server is beyond.
constexpr int kMostSockets = 1024;

struct End {
  std::string address;
  int port = 0;
};

template <class GetName>
std::optional<End> end_of(int socket, GetName get_name) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (get_name(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    if (inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size()) == nullptr) return std::nullopt;
    return End{text.data(), ntohs(v4.sin_port)};
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    if (inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size()) == nullptr) return std::nullopt;
    return End{text.data(), ntohs(v6.sin6_port)};
  }
  return std::nullopt;
}

}  // namespace

Peer::Peer(const std::string& address, int port, int local_port) {
  for (int socket = 0; socket < kMostSockets; ++socket) {
    const std::optional<End> other = end_of(socket, getpeername);
    if (!other || other->port != port) continue;
    const std::optional<End> own = end_of(socket, getsockname);
    if (!own || own->port != local_port) continue;
    if (other->address != address && other->address != "::ffff:" + address) continue;
    socket_ = socket;
    return;
  }
}

bool Peer::left() const {
  if (socket_ < 0) return false;
  char byte = 0;
  const ssize_t got = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void Peer::stop_reading() const {
  if (socket_ >= 0) shutdown(socket_, SHUT_RD);
}

}  // namespace caldera::serve
