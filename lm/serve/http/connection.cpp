#include "lm/serve/http/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace caldera::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPiece = std::size_t{64} << 10;  // of what is received at once
constexpr double kLeastAnswerRate = 4096;              // bytes a second that a client is to take

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

thread_local const Connection* answered = nullptr;

template <class GetName>
ConnectionEnd end_of(int socket, GetName get_name) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (get_name(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return {text.data(), ntohs(v4.sin_port)};
  }
  if (storage.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  return {text.data(), ntohs(v6.sin6_port)};
}

bool would_wait() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

Connection::Connection(int socket, const FramingLimits& limits, const TlsContext* tls)
    : socket_(socket),
      client_(end_of(socket, getpeername)),
      server_(end_of(socket, getsockname)),
      limits_(limits),
      framing_(limits) {
  if (tls == nullptr) return;
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  tls_ = std::make_unique<TlsSession>(*tls, socket_);
}

Connection::~Connection() { close(socket_); }

ssize_t Connection::take(char* to, std::size_t size, bool& waits) {
  waits = false;
  if (tls_ == nullptr) {
    const ssize_t got = recv(socket_, to, size, MSG_DONTWAIT);
    waits = got < 0 && would_wait();
    return got;
  }
  std::size_t count = 0;
  const TlsSession::Result result = tls_->read({to, size}, count);
  if (result == TlsSession::Result::done) return static_cast<ssize_t>(count);
  waits = result != TlsSession::Result::ended;
  return waits ? -1 : 0;
}

ssize_t Connection::give(std::string_view bytes, bool& waits) {
  waits = false;
  if (tls_ == nullptr) {
    const ssize_t done = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    waits = done < 0 && would_wait();
    return done;
  }
  std::size_t count = 0;
  const TlsSession::Result result = tls_->write(bytes, count);
  if (result == TlsSession::Result::done) return static_cast<ssize_t>(count);
  waits = result != TlsSession::Result::ended;
  return -1;
}

bool Connection::receive() {
  // What is encrypted is read to its end: the rest would not wake who waits for the socket.
  const std::size_t most = limits_.max_body + (std::size_t{1} << 20);
  for (;;) {
    const std::size_t size = in_.size();
    in_.resize(size + kPiece);
    bool waits = false;
    const ssize_t got = take(in_.data() + size, kPiece, waits);
    in_.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got <= 0) return waits;
    if (tls_ == nullptr || in_.size() > most) return true;
  }
}

bool Connection::discard() {
  std::array<char, 4096> scratch;
  bool waits = false;
  while (take(scratch.data(), scratch.size(), waits) > 0) {
  }
  return waits;
}

RequestFraming::State Connection::look() {
  // Some clients send an empty line behind a body.
  constexpr std::string_view kEmpty = "\r\n";
  while (framing_.size() == 0 && in_.starts_with(kEmpty)) {
    in_.erase(0, kEmpty.size());
    framing_ = RequestFraming(limits_);
  }
  return framing_.advance(in_);
}

void Connection::send_continue() {
  if (continued_ || !framing_.expects_continue()) return;
  continued_ = true;
  bool waits = false;
  give(kContinue, waits);
}

std::size_t Connection::read(char* to, std::size_t size) {
  const std::size_t count = std::min(size, framing_.size() - read_);
  std::copy_n(in_.data() + read_, count, to);
  read_ += count;
  return count;
}

void Connection::next_request() {
  in_.erase(0, framing_.size());
  if (in_.empty()) in_.shrink_to_fit();  // one that waits for years holds no body
  framing_ = RequestFraming(limits_);
  read_ = 0;
  continued_ = false;
  waited_ = {};
  sent_ = 0;
}

bool Connection::send(std::string_view bytes, int seconds) {
  while (!bytes.empty()) {
    bool waits = false;
    const ssize_t done = give(bytes, waits);
    if (done > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(done));
      sent_ += static_cast<std::size_t>(done);
      continue;
    }
    if (done < 0 && !waits) return false;
    const double allowed = seconds + static_cast<double>(sent_) / kLeastAnswerRate - waited_.count();
    if (allowed <= 0) return false;
    const Clock::time_point start = Clock::now();
    pollfd waiter{socket_, POLLOUT, 0};
    poll(&waiter, 1, static_cast<int>(1000 * std::min<double>(allowed, seconds)) + 1);
    if ((waiter.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return false;
    const auto waited = Clock::now() - start;
    waited_ += waited;
    if (waiter.revents == 0 && waited >= std::chrono::seconds(seconds)) return false;
  }
  return true;
}

void Connection::send_last(std::string_view bytes) {
  bool waits = false;
  if (!bytes.empty()) give(bytes, waits);
  if (tls_ != nullptr) tls_->say_end();
  shutdown(socket_, SHUT_WR);
}

bool Connection::left() const {
  if (tls_ != nullptr) return tls_->ended();
  char byte = 0;
  const ssize_t got = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && !would_wait());
}

const Connection& Connection::current() { return *answered; }

AnsweredConnection::AnsweredConnection(const Connection& connection) { answered = &connection; }
AnsweredConnection::~AnsweredConnection() { answered = nullptr; }

ssize_t ConnectionStream::write(const char* from, std::size_t size) {
  const std::string_view bytes(from, size);
  // Requests that are answered have come to their end: the client was told, or did not wait for it.
  const bool done = bytes == kContinue || connection_.send(bytes, write_seconds_);
  return done ? static_cast<ssize_t>(size) : -1;
}

void ConnectionStream::get_remote_ip_and_port(std::string& address, int& port) const {
  address = connection_.client().address;
  port = connection_.client().port;
}

void ConnectionStream::get_local_ip_and_port(std::string& address, int& port) const {
  address = connection_.server().address;
  port = connection_.server().port;
}

}  // namespace caldera::serve
