// A time as text.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace caldera::chat {

/// Returns what C's strftime writes in the C locale, with the flags - _ 0 ^ # of GNU between percent and
/// letter; %f is the microseconds. A letter without a meaning stays as it is.
std::string format_time(std::chrono::local_time<std::chrono::microseconds> time, std::string_view format);

}  // namespace caldera::chat
