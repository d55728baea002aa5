// StopSignal: waits for the signals that tell a program to end.
#pragma once

namespace caldera::serve {

/// From its construction on, SIGINT and SIGTERM wake wait() instead of ending the program, whichever thread
/// gets them; afterwards they do what they did before. One at a time.
class StopSignal {
 public:
  /// Throws FileError where the system gives no pipe.
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Returns once for each signal, or each wake().
  void wait() const;
  void wake() const;
};

}  // namespace caldera::serve
