#include "lm/serve/http/stop_signal.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "engine/base/error.h"

namespace caldera::serve {
namespace {

// A handler may do little more than write; it finds where to here.
std::array<int, 2> ends{-1, -1};
constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
std::array<struct sigaction, kSignals.size()> before;

extern "C" void on_stop_signal(int signal) {
  const int error = errno;
  const char byte = static_cast<char>(signal);
  [[maybe_unused]] const auto written = write(ends[1], &byte, 1);
  errno = error;
}

bool terminal_is_there() {
  const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (terminal >= 0) close(terminal);
  return terminal >= 0;
}

}  // namespace

StopSignal::StopSignal() : has_terminal_(terminal_is_there()) {
  if (pipe(ends.data()) != 0) throw FileError("no pipe for signals: too many files are open");
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    // As nohup leaves it.
    if (kSignals[i] == SIGHUP && before[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  for (int& end : ends) {
    close(end);
    end = -1;
  }
}

StopSignal::Told StopSignal::wait() const {
  char byte = 0;
  // A thread that only reads is not told of signals where the thread sanitizer puts them off.
  pollfd told{ends[0], POLLIN, 0};
  while (poll(&told, 1, -1) < 0 && errno == EINTR) {
  }
  while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
  }
  if (byte != SIGHUP) return Told::stop;
  return has_terminal_ && !terminal_is_there() ? Told::stop : Told::reload;
}

void StopSignal::wake() const { on_stop_signal(SIGTERM); }

}  // namespace caldera::serve
