// Ctrl-C ends an answer, not the program.
#pragma once

namespace caldera::cli {

/// While one of these lives, SIGINT is only remembered; the next one while it is remembered ends the program,
/// so that work which does not look can be left.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// Whether there was an interrupt; it stays remembered.
bool interrupted();
/// Tells whether there was one, and forgets it.
bool take_interrupt();

}  // namespace caldera::cli
