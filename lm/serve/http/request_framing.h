// RequestFraming: where a request ends among the bytes of a connection (RFC 9112).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caldera::serve {

struct FramingLimits {
  std::size_t max_body = std::size_t{8} << 20;   ///< bytes of a body (413)
  std::size_t max_head = std::size_t{64} << 10;  ///< of request line and headers together (431)
  std::size_t max_line = 8000;                   ///< of the request line (414)
  std::size_t max_headers = 100;                 ///< (431)
};

/// Looks at the bytes of one request as they come, and at no byte twice. It takes what has one meaning alone:
/// a body's length that is told twice or otherwise than in digits, lines that end in a bare line feed,
/// headers on several lines and their like are refused, so that nobody in front of the server sees another
/// request than the server does (request smuggling).
class RequestFraming {
 public:
  enum class State : std::uint8_t { head, body, complete, refused };

  explicit RequestFraming(const FramingLimits& limits) : limits_(limits) {}

  /// Goes on with all the bytes that there are, from the request's first one.
  State advance(std::string_view bytes);
  /// Bytes of a request that is complete.
  std::size_t size() const { return at_; }
  /// Whether the client waits for "100 Continue" before it sends the body. State::body and later.
  bool expects_continue() const { return expects_; }
  /// The status of a request that is refused, and why.
  int status() const { return status_; }
  const std::string& problem() const { return problem_; }

 private:
  enum class Step : std::uint8_t { line, length, chunk_line, chunk, chunk_end, last_line, complete, refused };

  bool go_on(std::string_view bytes);
  std::optional<std::string_view> take_line(std::string_view bytes, std::size_t longest, int status);
  void request_line(std::string_view line);
  void header(std::string_view line);
  void end_head();
  void chunk_line(std::string_view line);
  void refuse(int status, std::string problem);

  FramingLimits limits_;
  Step step_ = Step::line;
  std::size_t at_ = 0;        // what comes next
  std::size_t searched_ = 0;  // of a line that has no end yet
  std::size_t lines_ = 0;
  std::size_t left_ = 0;  // of the body, or of a chunk
  std::size_t body_ = 0;  // of chunks
  bool is_old_ = false;   // HTTP/1.0
  int hosts_ = 0;
  std::optional<std::size_t> length_;
  bool chunked_ = false;
  bool expects_ = false;
  int status_ = 0;
  std::string problem_;
};

}  // namespace caldera::serve
