// Values as JSON text, as Python's json.dumps writes them, and values from JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "lm/chat/template/value/value.h"

namespace caldera::chat {

struct JsonStyle {
  bool ascii = false;  ///< everything beyond ASCII as \uXXXX
  bool sort_keys = false;
  std::optional<std::string> indent;  ///< of one level; nothing for all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// Throws a Fault for values that JSON has no place for.
Value json_text(const Value& value, const JsonStyle& style);

/// Keeps the order of keys. Integers beyond 64 bits (parse_whole_integers) become a LargeInteger.
Value value_from_json(const nlohmann::ordered_json& json);

}  // namespace caldera::chat
