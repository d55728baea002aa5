// Connection: a client's socket, what has come of its next requests, and how answers are sent.
#pragma once

#include <httplib.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "lm/serve/http/request_framing.h"
#include "lm/serve/http/tls.h"

namespace caldera::serve {

/// Names an end of a connection, for logs and for HTTP.
struct ConnectionEnd {
  std::string address;
  int port = 0;
};

/// One thread at a time has it: that which waits for requests, or one that answers.
class Connection {
 public:
  /// Takes the socket, which the destructor closes. `tls`: what is sent and received is encrypted; null: it
  /// is not.
  Connection(int socket, const FramingLimits& limits, const TlsContext* tls = nullptr);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  const ConnectionEnd& client() const { return client_; }
  const ConnectionEnd& server() const { return server_; }

  /// Takes what has come, without waiting. False once the client sends no more.
  bool receive();
  /// Takes what comes and throws it away. False once the client sends no more.
  bool discard();
  /// Says how far the next request has come.
  RequestFraming::State look();
  const RequestFraming& framing() const { return framing_; }
  /// Bytes that were received and not answered.
  std::size_t buffered() const { return in_.size(); }
  /// Tells a client that waits for it to send its body; once a request.
  void send_continue();

  /// Gives the next bytes of the request that is complete; 0 at its end.
  std::size_t read(char* to, std::size_t size);
  /// Goes over to the next request; what nobody read of the last one is gone.
  void next_request();

  /// Sends bytes. Waits for a client that takes none, `seconds` at most, and longer for one that takes at
  /// least so many bytes a second. False where the client is gone, or too slow.
  bool send(std::string_view bytes, int seconds);
  /// Sends what can be sent without waiting, and says that no more comes.
  void send_last(std::string_view bytes);
  /// Whether the client has closed the connection, or its side of it.
  bool left() const;

  /// The connection of the request that this thread answers. Only while it does.
  static const Connection& current();

 private:
  friend class AnsweredConnection;

  /// Do what recv() and send() do without waiting: -1 where they would, which `waits` tells apart.
  ssize_t take(char* to, std::size_t size, bool& waits);
  ssize_t give(std::string_view bytes, bool& waits);

  int socket_;
  std::unique_ptr<TlsSession> tls_;
  ConnectionEnd client_, server_;
  FramingLimits limits_;
  RequestFraming framing_;
  std::string in_;
  std::size_t read_ = 0;  // of the request
  bool continued_ = false;
  std::chrono::duration<double> waited_{0};  // for the client to take the answer
  std::size_t sent_ = 0;                     // of the answer
};

/// Makes a connection that of the calling thread.
class AnsweredConnection {
 public:
  explicit AnsweredConnection(const Connection& connection);
  ~AnsweredConnection();
  AnsweredConnection(const AnsweredConnection&) = delete;
  AnsweredConnection& operator=(const AnsweredConnection&) = delete;
};

/// A connection as cpp-httplib reads requests and writes answers.
class ConnectionStream : public httplib::Stream {
 public:
  ConnectionStream(Connection& connection, int write_seconds)
      : connection_(connection), write_seconds_(write_seconds) {}

  // Versions of cpp-httplib differ in which of these there are.
  // NOLINTBEGIN(modernize-use-override)
  virtual bool is_readable() const { return true; }
  virtual bool wait_readable() const { return true; }
  virtual bool is_writable() const { return !connection_.left(); }
  virtual bool wait_writable() const { return !connection_.left(); }
  virtual time_t duration() const { return 0; }
  // NOLINTEND(modernize-use-override)

  ssize_t read(char* to, std::size_t size) override {
    return static_cast<ssize_t>(connection_.read(to, size));
  }
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& address, int& port) const override;
  void get_local_ip_and_port(std::string& address, int& port) const override;
  // cpp-httplib refuses those that select() does not know, which nothing here waits by.
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  Connection& connection_;
  int write_seconds_;
};

}  // namespace caldera::serve
