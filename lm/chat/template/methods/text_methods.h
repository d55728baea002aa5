// The methods of Python's str.
#pragma once

#include <string_view>

#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/function.h"

namespace caldera::chat {

using TextMethod = Value (*)(const Value& self, Arguments& arguments);

/// nullptr where str has no such method, or none that makes sense for templates.
TextMethod find_text_method(std::string_view name);

/// Names the ends that strip() works on. Filters use these functions as well. `chars` none: whitespace.
enum class Ends : std::uint8_t { both, left, right };
Value strip(const Value& text, const Value& chars, Ends ends);
/// `most` < 0 for all.
Value replace(std::string_view text, std::string_view old, std::string_view with, std::int64_t most);
/// Padded on both sides up to `width` characters.
Value center(const Value& text, std::int64_t width, std::string_view fill);
/// The lines of a text, as str.splitlines() parts them.
ViewList lines_of(std::string_view text, bool keep_ends);

}  // namespace caldera::chat
