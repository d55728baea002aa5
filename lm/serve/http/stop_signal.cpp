#include "lm/serve/http/stop_signal.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "engine/base/error.h"

namespace caldera::serve {
namespace {

// A handler may do little more than write; it finds where to here.
std::array<int, 2> ends{-1, -1};
std::array<struct sigaction, 2> before;

extern "C" void on_stop_signal(int) {
  const int error = errno;
  const char byte = 0;
  [[maybe_unused]] const auto written = write(ends[1], &byte, 1);
  errno = error;
}

}  // namespace

StopSignal::StopSignal() {
  if (pipe(ends.data()) != 0) throw FileError("no pipe for signals: too many files are open");
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before[0]);
  sigaction(SIGTERM, &action, &before[1]);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &before[0], nullptr);
  sigaction(SIGTERM, &before[1], nullptr);
  for (int& end : ends) {
    close(end);
    end = -1;
  }
}

void StopSignal::wait() const {
  char byte = 0;
  while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
  }
}

void StopSignal::wake() const { on_stop_signal(0); }

}  // namespace caldera::serve
