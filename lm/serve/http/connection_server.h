// ConnectionServer: an HTTP server whose clients take a thread only while they are answered.
#pragma once

#include <httplib.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lm/serve/http/connection.h"

namespace caldera::serve {

struct ConnectionOptions {
  std::size_t threads = 16;  ///< requests that are answered at once; one more gets 503
  /// Clients that are connected. Where there are as many, the one that was silent for longest has to go.
  std::size_t max_connections = 4096;
  std::size_t max_buffered = std::size_t{256} << 20;  ///< bytes of requests that have not come to their end
  FramingLimits framing;
  std::shared_ptr<const TlsContext> tls;  ///< null: connections are not encrypted
  int read_seconds = 10;   ///< for a request's headers, and without more of its body than the least rate
  int write_seconds = 30;  ///< for a client that takes no more of an answer
  int idle_seconds = 30;   ///< until a next request begins
  /// Makes the JSON of a refusal that no handler sees.
  std::function<std::string(int status, const std::string& problem)> refusal;
  /// Learns of such refusals.
  std::function<void(const ConnectionEnd& client, int status, const std::string& problem)> refused;
};

/// cpp-httplib's server with other connections: one thread waits for the requests of all clients, and hands
/// those that have come to their end to threads that answer them. A client that sends slowly, half of a
/// request or nothing costs no more than its socket; what cannot be answered is refused at once. Set
/// handlers as of httplib::Server. Handlers find their client with Connection::current().
class ConnectionServer : public httplib::Server {
 public:
  explicit ConnectionServer(ConnectionOptions options);
  /// Ends at once.
  ~ConnectionServer() override;

  /// Takes an address, as bind_alone(), and accepts connections from then on. Returns the port.
  int bind_alone_to(const std::string& host, int port);
  /// Answers on threads of its own.
  void start();
  /// Encrypts connections to come with another certificate.
  void set_tls(std::shared_ptr<const TlsContext> tls);
  /// Takes no new connections, ends those that wait, and waits for what is being answered.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  using ConnectionPtr = std::unique_ptr<Connection>;

  /// A connection whose next request is awaited, or whose client is to have read the last answer.
  struct Waiting {
    ConnectionPtr connection;
    Clock::time_point since = Clock::now();  // it was accepted, or answered
    Clock::time_point deadline;
    std::size_t bytes = 0;  // of the next request
    bool closing = false;
  };
  class Inline;

  // The return type is cpp-httplib's.
  bool process_and_close_socket(socket_t socket) override;

  void add(ConnectionPtr connection, bool closing);
  void wake() const;
  void watch();
  void take_incoming();
  void make_room();
  void read_from(Waiting& waiting);
  void expire(Waiting& waiting);
  void refuse(Waiting& waiting, int status, const std::string& problem);
  void close_later(Waiting& waiting, std::string_view last);
  bool give(ConnectionPtr& connection);
  void work();
  bool answer(Connection& connection, bool last);

  ConnectionOptions options_;
  int wake_read_ = -1, wake_write_ = -1;
  std::vector<Waiting> waiting_;  // of the thread that waits
  std::thread accepter_, watcher_;
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<Waiting> incoming_;
  std::deque<ConnectionPtr> complete_;
  std::size_t idle_ = 0;
  bool ended_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace caldera::serve
