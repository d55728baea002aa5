#include "cli/chat/line_reader.h"

#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/chat/interrupts.h"
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

}  // namespace

LineReader::LineReader() : interactive_(isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
#if CALDERA_HAS_LIBEDIT
  if (!interactive_) return;
  std::setlocale(LC_CTYPE, "");  // the editor counts columns; numbers keep their point
  rl_readline_name = const_cast<char*>("caldera");
  using_history();
#endif
}

std::optional<std::string> LineReader::read(const std::string& prompt) {
#if CALDERA_HAS_LIBEDIT
  if (interactive_) {
    const std::unique_ptr<char, Free> line(::readline(prompt.c_str()));
    if (line == nullptr) {
      if (!take_interrupt()) return std::nullopt;
      std::fputc('\n', stdout);
      return std::string();
    }
    if (*line != '\0') add_history(line.get());
    return std::string(line.get());
  }
#endif
  if (interactive_) {
    std::fputs(prompt.c_str(), stdout);
    std::fflush(stdout);
  }
  return read_plain();
}

}  // namespace caldera::cli
