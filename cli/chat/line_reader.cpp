#include "cli/chat/line_reader.h"

#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "cli/chat/interrupts.h"
#include "cli/chat/typed_text.h"
#if CALDERA_HAS_LIBEDIT
#include <editline/readline.h>
#endif

namespace caldera::cli {
namespace {

struct Free {
  void operator()(char* text) const { std::free(text); }
};

std::optional<std::string> read_plain() {
  char* text = nullptr;
  std::size_t capacity = 0;
  const ssize_t size = ::getline(&text, &capacity, stdin);
  const std::unique_ptr<char, Free> owner(text);
  if (size < 0) {
    if (!take_interrupt()) return std::nullopt;
    std::clearerr(stdin);
    return std::string();
  }
  std::string line(text, static_cast<std::size_t>(size));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return line;
}

#if CALDERA_HAS_LIBEDIT
TypedText typed;

/// The next character for the line editor; -1 at the end and where there is an interrupt.
int next_character(std::FILE* /*input*/) {
  constexpr int kSoon = 30;  // milliseconds: a terminal sends a mark at once, a person no two keys
  std::array<char, 4096> bytes;
  while (typed.empty()) {
    pollfd waiter{STDIN_FILENO, POLLIN, 0};
    if (typed.holds_back() && poll(&waiter, 1, kSoon) == 0) {
      typed.flush();
      continue;
    }
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR && !interrupted()) continue;
    if (got <= 0) return -1;
    typed.push({bytes.data(), static_cast<std::size_t>(got)});
  }
  return static_cast<int>(typed.take());
}

void tell_terminal(std::string_view what) {
  std::fwrite(what.data(), 1, what.size(), stdout);
  std::fflush(stdout);
}
#endif

}  // namespace

LineReader::LineReader() : interactive_(isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
#if CALDERA_HAS_LIBEDIT
  if (!interactive_) return;
  std::setlocale(LC_CTYPE, "");  // the editor counts columns; numbers keep their point
  rl_readline_name = const_cast<char*>("caldera");
  // Elsewhere the sign of a line's end cannot be shown.
  marks_pastes_ = std::string_view(nl_langinfo(CODESET)) == "UTF-8";
  if (marks_pastes_) rl_getc_function = next_character;
  using_history();
#endif
}

std::optional<std::string> LineReader::read(const std::string& prompt) {
#if CALDERA_HAS_LIBEDIT
  if (interactive_) {
    if (marks_pastes_) tell_terminal(kMarkPastes);
    const std::unique_ptr<char, Free> line(::readline(prompt.c_str()));
    if (marks_pastes_) tell_terminal(kMarkNoPastes);
    if (line == nullptr) {
      if (!take_interrupt()) return std::nullopt;
      std::fputc('\n', stdout);
      return std::string();
    }
    if (*line != '\0') add_history(line.get());
    return marks_pastes_ ? with_line_ends(line.get()) : std::string(line.get());
  }
#endif
  if (interactive_) {
    std::fputs(prompt.c_str(), stdout);
    std::fflush(stdout);
  }
  return read_plain();
}

}  // namespace caldera::cli
