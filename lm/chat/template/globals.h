// The functions that every template has: range, dict, namespace, cycler, joiner, raise_exception,
// strftime_now.
#pragma once

#include <chrono>
#include <string>

#include "lm/chat/template/objects.h"

namespace caldera::chat {

/// Thrown by raise_exception().
struct Refusal {
  std::string message;
};

using LocalTime = std::chrono::local_time<std::chrono::microseconds>;

/// False where there is no function of that name. Namespaces are added to `keep`.
bool find_global(std::string_view name, LocalTime now, Keep& keep, Value& out);

}  // namespace caldera::chat
