// RawClient: a socket that sends bytes as they are.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace caldera::testing {

/// A connection to a port of this machine.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) ended_ = true;
  }
  RawClient(RawClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        ended_(other.ended_),
        received_(std::move(other.received_)) {}
  RawClient& operator=(RawClient&&) = delete;
  ~RawClient() {
    if (socket_ >= 0) close(socket_);
  }

  void send(std::string_view bytes) const {
    [[maybe_unused]] const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// What comes within a while: as soon as something does.
  std::string receive_for(std::chrono::milliseconds wait) {
    pollfd waiter{socket_, POLLIN, 0};
    if (poll(&waiter, 1, static_cast<int>(wait.count())) <= 0) return {};
    char buffer[4096];
    const ssize_t got = recv(socket_, buffer, sizeof(buffer), 0);
    if (got <= 0) ended_ = true;
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
  }
  /// One answer, by its Content-Length; what has come of it where it does not come to its end in 10 seconds.
  std::string receive() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (true) {
      const std::size_t head = received_.find("\r\n\r\n");
      if (head != std::string::npos) {
        constexpr std::string_view kLength = "Content-Length: ";
        const std::size_t length = received_.find(kLength);
        const std::size_t size =
            head + 4 +
            (length < head ? std::strtoull(received_.c_str() + length + kLength.size(), nullptr, 10) : 0);
        if (received_.size() >= size) {
          std::string answer = received_.substr(0, size);
          received_.erase(0, size);
          return answer;
        }
      }
      if (ended_ || std::chrono::steady_clock::now() > end) return std::exchange(received_, {});
      received_ += receive_for(std::chrono::milliseconds(100));
    }
  }
  std::string ask(std::string_view request) {
    send(request);
    return receive();
  }
  /// Whether the server ends the connection within two seconds.
  bool closed() {
    for (int i = 0; i < 20 && !ended_; ++i) received_ += receive_for(std::chrono::milliseconds(100));
    return ended_;
  }

 private:
  int socket_;
  bool ended_ = false;
  std::string received_;
};

}  // namespace caldera::testing
