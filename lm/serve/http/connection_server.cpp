#include "lm/serve/http/connection_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "engine/base/error.h"
#include "lm/serve/http/listening.h"

namespace caldera::serve {
namespace {

using namespace std::chrono_literals;

constexpr auto kLinger = 2s;                  // for a client to read what it is told last
constexpr std::size_t kLeastBodyRate = 4096;  // bytes a second that a body is to come with
constexpr std::size_t kMostAnswers = 1000;    // of one connection

std::string_view reason_of(int status) {
  switch (status) {
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 417:
      return "Expectation Failed";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Bad Request";
  }
}

/// Versions of cpp-httplib differ in where they are told the addresses.
template <class Server>
bool process(Server&& process_request, httplib::Stream& stream, const Connection& connection, bool last,
             bool& closed) {
  if constexpr (requires { process_request(stream, last, closed, nullptr); }) {
    return process_request(stream, last, closed, nullptr);
  } else {
    return process_request(stream, connection.client().address, connection.client().port,
                           connection.server().address, connection.server().port, last, closed, nullptr);
  }
}

}  // namespace

/// Runs what cpp-httplib would give a thread of a pool: process_and_close_socket() hands the socket on.
class ConnectionServer::Inline : public httplib::TaskQueue {
 public:
  // The return type differs between versions: nothing, or whether the task is taken.
  using Enqueued =
      decltype(std::declval<httplib::TaskQueue&>().enqueue(std::declval<std::function<void()>>()));
  Enqueued enqueue(std::function<void()> task) override {
    task();
    return static_cast<Enqueued>(true);
  }
  void shutdown() override {}
};

ConnectionServer::ConnectionServer(ConnectionOptions options) : options_(std::move(options)) {
  new_task_queue = [] { return new Inline(); };
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw FileError("no pipe for the server: too many files are open");
  wake_read_ = ends[0];
  wake_write_ = ends[1];
  for (const int end : ends) fcntl(end, F_SETFL, O_NONBLOCK);
}

ConnectionServer::~ConnectionServer() {
  end();
  close(wake_read_);
  close(wake_write_);
}

int ConnectionServer::bind_alone_to(const std::string& host, int port) {
  return bind_alone(*this, host, port);
}

void ConnectionServer::start() {
  watcher_ = std::thread([this] { watch(); });
  accepter_ = std::thread([this] { listen_after_bind(); });
  while (!is_running()) std::this_thread::sleep_for(1ms);
}

void ConnectionServer::end() {
  if (!accepter_.joinable()) return;
  stop();
  accepter_.join();
  stopping_ = true;
  wake();
  watcher_.join();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  waiting_.clear();
  incoming_.clear();
}

void ConnectionServer::set_tls(std::shared_ptr<const TlsContext> tls) {
  const std::lock_guard lock(mutex_);
  options_.tls = std::move(tls);
}

bool ConnectionServer::process_and_close_socket(socket_t socket) {
  std::shared_ptr<const TlsContext> tls;
  {
    const std::lock_guard lock(mutex_);
    tls = options_.tls;
  }
  // A session keeps what it needs of it.
  add(std::make_unique<Connection>(socket, options_.framing, tls.get()), false);
  return true;
}

void ConnectionServer::add(ConnectionPtr connection, bool closing) {
  Waiting waiting;
  waiting.deadline = waiting.since + (closing ? kLinger : std::chrono::seconds(options_.idle_seconds));
  waiting.connection = std::move(connection);
  waiting.closing = closing;
  {
    const std::lock_guard lock(mutex_);
    incoming_.push_back(std::move(waiting));
  }
  wake();
}

void ConnectionServer::wake() const {
  const char byte = 0;
  // A pipe that is full wakes as well.
  [[maybe_unused]] const ssize_t written = write(wake_write_, &byte, 1);
}

/// Waits for requests of all connections that are not being answered.
void ConnectionServer::watch() {
  std::vector<pollfd> sockets;
  while (!stopping_) {
    sockets.assign(1, {wake_read_, POLLIN, 0});
    Clock::time_point next = Clock::now() + 1s;
    for (const Waiting& waiting : waiting_) {
      sockets.push_back({waiting.connection->socket(), POLLIN, 0});
      next = std::min(next, waiting.deadline);
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now());
    poll(sockets.data(), sockets.size(), static_cast<int>(std::max<std::int64_t>(left.count() + 1, 0)));
    for (std::size_t i = 0; i < waiting_.size(); ++i)
      if (sockets[i + 1].revents != 0) read_from(waiting_[i]);
    for (Waiting& waiting : waiting_)
      if (waiting.connection != nullptr && Clock::now() >= waiting.deadline) expire(waiting);
    std::erase_if(waiting_, [](const Waiting& waiting) { return waiting.connection == nullptr; });
    std::array<char, 256> scratch;
    while (read(wake_read_, scratch.data(), scratch.size()) > 0) {
    }
    take_incoming();
  }
}

void ConnectionServer::take_incoming() {
  std::vector<Waiting> incoming;
  {
    const std::lock_guard lock(mutex_);
    incoming.swap(incoming_);
  }
  for (Waiting& waiting : incoming) {
    if (waiting_.size() >= options_.max_connections) make_room();
    waiting_.push_back(std::move(waiting));
    read_from(waiting_.back());
    if (waiting_.back().connection == nullptr) waiting_.pop_back();
  }
}

/// Ends the connection that has waited for longest: whoever sends a request in one piece is never it.
void ConnectionServer::make_room() {
  const auto oldest =
      std::ranges::min_element(waiting_, {}, [](const Waiting& waiting) { return waiting.since; });
  if (oldest != waiting_.end()) waiting_.erase(oldest);
}

void ConnectionServer::read_from(Waiting& waiting) {
  Connection& connection = *waiting.connection;
  if (waiting.closing) {
    if (!connection.discard()) waiting.connection.reset();
    return;
  }
  const bool goes_on = connection.receive();
  const RequestFraming::State state = connection.look();
  const RequestFraming& framing = connection.framing();
  if (state == RequestFraming::State::complete) {
    if (!give(waiting.connection))
      refuse(waiting, 503, "the server has as many requests as it may; try again later");
    return;
  }
  if (state == RequestFraming::State::refused) return refuse(waiting, framing.status(), framing.problem());
  if (!goes_on) return waiting.connection.reset();
  if (connection.buffered() == waiting.bytes) return;
  if (state == RequestFraming::State::body) connection.send_continue();
  const auto now = Clock::now();
  const auto patience = std::chrono::seconds(options_.read_seconds);
  if (waiting.bytes == 0) {
    waiting.since = now;
    waiting.deadline = now + patience;
  }
  waiting.bytes = connection.buffered();
  // Headers have no longer than that, bodies as long as they come at the least rate.
  if (state == RequestFraming::State::body)
    waiting.deadline = waiting.since + patience + std::chrono::seconds(waiting.bytes / kLeastBodyRate);
  std::size_t total = 0;
  for (const Waiting& other : waiting_)
    if (other.connection != nullptr) total += other.connection->buffered();
  if (total > options_.max_buffered)
    refuse(waiting, 503, "the server has as many bytes of requests as it may; try again later");
}

void ConnectionServer::expire(Waiting& waiting) {
  if (waiting.closing || waiting.connection->buffered() == 0) return waiting.connection.reset();
  refuse(waiting, 408, "the request took too long to come");
}

void ConnectionServer::refuse(Waiting& waiting, int status, const std::string& problem) {
  const std::string body = options_.refusal ? options_.refusal(status, problem) : problem + "\n";
  if (options_.refused) options_.refused(waiting.connection->client(), status, problem);
  close_later(waiting,
              fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}"
                          "Connection: close\r\n\r\n{}",
                          status, reason_of(status), options_.refusal ? "application/json" : "text/plain",
                          body.size(), status == 503 ? "Retry-After: 2\r\n" : "", body));
}

/// Sends what is the last, and lets the client read it: a socket that is closed with bytes unread takes back
/// what was sent.
void ConnectionServer::close_later(Waiting& waiting, std::string_view last) {
  waiting.connection->send_last(last);
  waiting.closing = true;
  waiting.deadline = Clock::now() + kLinger;
}

/// Hands a request to a thread. False where all are busy.
bool ConnectionServer::give(ConnectionPtr& connection) {
  const std::lock_guard lock(mutex_);
  if (idle_ <= complete_.size()) {
    if (workers_.size() >= options_.threads) return false;
    workers_.emplace_back([this] { work(); });
    ++idle_;  // it is on its way
  }
  complete_.push_back(std::move(connection));
  changed_.notify_one();
  return true;
}

void ConnectionServer::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !complete_.empty() || ended_; });
    if (complete_.empty()) return;
    ConnectionPtr connection = std::move(complete_.front());
    complete_.pop_front();
    --idle_;
    lock.unlock();
    std::size_t answers = 0;
    bool goes_on = true;
    // Those that came in one piece are answered in turn.
    do goes_on = answer(*connection, ++answers == kMostAnswers || stopping_);
    while (goes_on && connection->look() == RequestFraming::State::complete);
    if (!goes_on) connection->send_last({});
    add(std::move(connection), !goes_on);
    lock.lock();
    ++idle_;
  }
}

/// Answers a request. False where the connection is to end.
bool ConnectionServer::answer(Connection& connection, bool last) {
  const AnsweredConnection here(connection);
  ConnectionStream stream(connection, options_.write_seconds);
  bool closed = last;
  const auto process_it = [this](auto&&... arguments) -> decltype(auto) requires requires(ConnectionServer &
                                                                                          self) {
    self.process_request(arguments...);
  }
  { return this->process_request(arguments...); };
  const bool done = process(process_it, stream, connection, last, closed);
  connection.next_request();
  return done && !closed;
}

}  // namespace caldera::serve
