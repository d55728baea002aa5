#include "lm/serve/http/request_framing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace caldera::serve {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

bool is_token(char c) {
  if (is_decimal(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; }

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

}  // namespace

RequestFraming::State RequestFraming::advance(std::string_view bytes) {
  while (step_ != Step::complete && step_ != Step::refused && go_on(bytes)) {
  }
  switch (step_) {
    case Step::line:
      return State::head;
    case Step::complete:
      return State::complete;
    case Step::refused:
      return State::refused;
    default:
      return State::body;
  }
}

/// Takes one line, or what there is of a body. False where more bytes are needed.
bool RequestFraming::go_on(std::string_view bytes) {
  constexpr std::size_t kChunkLine = 256;
  switch (step_) {
    case Step::line: {
      const auto line =
          take_line(bytes, lines_ == 0 ? limits_.max_line : limits_.max_head, lines_ == 0 ? 414 : 431);
      if (!line) return false;
      if (at_ > limits_.max_head || lines_ > limits_.max_headers) {
        refuse(431, "the request has too many headers, or too long ones");
      } else if (lines_++ == 0) {
        request_line(*line);
      } else if (line->empty()) {
        end_head();
      } else {
        header(*line);
      }
      return true;
    }
    case Step::length:
    case Step::chunk: {
      const std::size_t here = std::min(left_, bytes.size() - at_);
      at_ += here;
      left_ -= here;
      if (left_ > 0) return false;
      step_ = step_ == Step::length ? Step::complete : Step::chunk_end;
      searched_ = at_;
      return true;
    }
    case Step::chunk_line: {
      const auto line = take_line(bytes, kChunkLine, 400);
      if (line) chunk_line(*line);
      return line.has_value();
    }
    default: {  // an empty line behind a chunk, or behind the last one, where others might have trailers
      const auto line = take_line(bytes, kChunkLine, 400);
      if (!line) return false;
      if (!line->empty()) {
        refuse(400, "a chunk of the body is longer than it says, or has headers behind it");
      } else {
        step_ = step_ == Step::last_line ? Step::complete : Step::chunk_line;
      }
      return true;
    }
  }
}

/// The next line, without its end. None where it has not come to its end, or where it is refused.
std::optional<std::string_view> RequestFraming::take_line(std::string_view bytes, std::size_t longest,
                                                          int status) {
  const std::size_t end = bytes.find('\n', searched_);
  const std::size_t size = std::min(end, bytes.size()) - at_;
  if (size > longest) {
    refuse(status, status == 414 ? "the request's line is too long" : "a line of the request is too long");
    return std::nullopt;
  }
  if (end == std::string_view::npos) {
    searched_ = bytes.size();
    return std::nullopt;
  }
  const std::string_view line = bytes.substr(at_, size);
  at_ = searched_ = end + 1;
  if (!line.ends_with('\r') || std::ranges::any_of(line.substr(0, line.size() - 1), is_control)) {
    refuse(400, "the request is malformed: a line does not end as lines of HTTP do");
    return std::nullopt;
  }
  return line.substr(0, line.size() - 1);
}

void RequestFraming::request_line(std::string_view line) {
  is_old_ = line.ends_with(" HTTP/1.0");
  const std::size_t method = line.find(' ');
  const bool is_one = (is_old_ || line.ends_with(" HTTP/1.1")) && std::ranges::count(line, ' ') == 2 &&
                      method > 0 && std::ranges::all_of(line.substr(0, method), is_token);
  if (!is_one) return refuse(400, "the request is malformed: its first line is none of HTTP/1.1");
  // Other forms are for proxies, and may name another host than the header Host does.
  const std::string_view target = line.substr(method + 1);
  if (!target.starts_with('/') && !line.starts_with("OPTIONS * "))
    refuse(400, "the request is malformed: its target is no path");
}

void RequestFraming::header(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || colon == 0 || !std::ranges::all_of(name, is_token))
    return refuse(400, "the request is malformed: a header has no name");
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (equals_ignoring_case(name, "host")) {
    ++hosts_;
  } else if (equals_ignoring_case(name, "content-length")) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    const bool is_number = !value.empty() && std::ranges::all_of(value, is_decimal);
    if (length_ || !is_number) return refuse(400, "Content-Length must be one number");
    length_ = error == std::errc() && end == value.data() + value.size() ? length : SIZE_MAX;
  } else if (equals_ignoring_case(name, "transfer-encoding")) {
    if (chunked_ || !equals_ignoring_case(value, "chunked"))
      return refuse(chunked_ ? 400 : 501, "Transfer-Encoding must be chunked, once");
    chunked_ = true;
  } else if (equals_ignoring_case(name, "expect")) {
    if (!equals_ignoring_case(value, "100-continue")) return refuse(417, "Expect can be 100-continue alone");
    expects_ = true;
  }
}

void RequestFraming::end_head() {
  if (hosts_ > 1 || (hosts_ == 0 && !is_old_)) return refuse(400, "the request must have one header Host");
  if (chunked_ && (length_ || is_old_))
    return refuse(400, "Transfer-Encoding is there beside Content-Length, or in HTTP/1.0");
  left_ = length_.value_or(0);
  if (left_ > limits_.max_body)
    return refuse(413, fmt::format("the body is larger than {} bytes", limits_.max_body));
  if (chunked_) {
    step_ = Step::chunk_line;
  } else {
    step_ = left_ > 0 ? Step::length : Step::complete;
  }
}

void RequestFraming::chunk_line(std::string_view line) {
  // Blanks may stand before an extension alone.
  const std::size_t extension = line.find(';');
  std::string_view digits = line.substr(0, extension);
  if (extension != std::string_view::npos) digits = digits.substr(0, digits.find_last_not_of(" \t") + 1);
  std::size_t size = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, size, 16);
  if (digits.empty() || digits.front() == '-' || stopped != end || error == std::errc::invalid_argument)
    return refuse(400, "a chunk of the body has no size");
  if (error != std::errc() || size > limits_.max_body - body_)
    return refuse(413, fmt::format("the body is larger than {} bytes", limits_.max_body));
  body_ += size;
  left_ = size;
  step_ = size > 0 ? Step::chunk : Step::last_line;
  searched_ = at_;
}

void RequestFraming::refuse(int status, std::string problem) {
  step_ = Step::refused;
  status_ = status;
  problem_ = std::move(problem);
}

}  // namespace caldera::serve
