#include "cli/chat/interrupts.h"

#include <unistd.h>

#include <csignal>

namespace caldera::cli {
namespace {

volatile std::sig_atomic_t pending = 0;
struct sigaction before;

extern "C" void remember(int /*signal*/) {
  constexpr int kInterrupted = 130;
  if (pending != 0) _exit(kInterrupted);
  pending = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  struct sigaction action = {};
  action.sa_handler = remember;  // without SA_RESTART: a read that waits for the user ends
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &before, nullptr); }

bool interrupted() { return pending != 0; }

bool take_interrupt() {
  const bool was = pending != 0;
  pending = 0;
  return was;
}

}  // namespace caldera::cli
