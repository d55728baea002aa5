// str.format: "{} {name.attribute[key]!r:>8}".
#pragma once

#include <string>
#include <string_view>

#include "lm/chat/template/value/function.h"

namespace caldera::chat {

/// Says how a field's attributes and items are looked up: as the sandbox does.
struct FieldLookup {
  Value (*attribute)(const Value& of, const std::string& name);
  Value (*item)(const Value& of, const Value& key);
};

/// Throws a Fault as Python does for fields that do not parse or for which there is no argument.
Value brace_format(std::string_view format, const Arguments& arguments, const FieldLookup& lookup);

}  // namespace caldera::chat
