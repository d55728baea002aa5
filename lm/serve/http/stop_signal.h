// StopSignal: waits for the signals that tell a server to end, or to read its files again.
#pragma once

namespace caldera::serve {

/// From its construction on, SIGINT, SIGTERM and SIGHUP wake wait() instead of ending the program, whichever
/// thread gets them; afterwards they do what they did before. One at a time.
class StopSignal {
 public:
  enum class Told : unsigned char { stop, reload };

  /// Throws FileError where the system gives no pipe.
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Returns once for each signal, or each wake(). SIGHUP means that files are to be read again, unless the
  /// terminal that the program began in is gone: then it means the end, as it does elsewhere.
  Told wait() const;
  /// Makes wait() return `stop`.
  void wake() const;

 private:
  bool has_terminal_;
};

}  // namespace caldera::serve
