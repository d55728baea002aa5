// Writes JSON: objects of plain values, in the order in which they are given. Private to lm/ and training/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace caldera::detail {

struct EmptyObject {};
/// A value that is JSON already.
struct RawJson {
  std::string text;
};

using JsonValue = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string,
                               std::vector<std::string>, std::vector<std::int64_t>, EmptyObject, RawJson>;
using JsonMembers = std::vector<std::pair<std::string, JsonValue>>;

/// An object as text: on one line, or with `indent` blanks a level. Throws ValueError for a string that is
/// not UTF-8.
std::string to_json(const JsonMembers& members, int indent = -1);

/// A string as JSON writes it, with its quotes. Throws ValueError for one that is not UTF-8.
std::string json_string(std::string_view text);

}  // namespace caldera::detail
