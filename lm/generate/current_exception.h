// Tells what an exception of unknown type says. Private to lm/generate/.
#pragma once

#include <exception>
#include <string>

namespace caldera::detail {

/// Returns the message for a handler of all exceptions: what user code throws need not be a std::exception.
inline std::string message_of_current_exception() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception without a message";
  }
}

}  // namespace caldera::detail
