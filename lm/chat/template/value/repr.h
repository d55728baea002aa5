// Values as text: what Python's str() and repr() give.
#pragma once

#include <string>
#include <string_view>

#include "lm/chat/template/value/builders.h"

namespace caldera::chat {

/// Adds str(value); a text keeps the spans it has.
void add_text(TextBuilder& out, const Value& value);
/// str(value) as a value and as bytes.
Value text_of(const Value& value);
std::string bytes_of(const Value& value);

void add_repr(TextBuilder& out, const Value& value);
std::string repr_of(const Value& value);
/// repr() of a text; with `ascii`, as ascii().
void add_text_repr(TextBuilder& out, std::string_view text, bool ascii = false);

}  // namespace caldera::chat
