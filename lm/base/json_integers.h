// JSON whose integers keep all their digits. Private to lm/.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace caldera::detail {

/// Parses as nlohmann::ordered_json::parse does, and throws what it throws; but an integer that neither 64
/// bits with a sign nor such without one hold becomes no float: it is a binary value of its digits. Texts
/// nest no deeper than the caller's stack allows: see nests_deeper().
nlohmann::ordered_json parse_whole_integers(std::string_view text);

/// Gives the digits, with a sign before them, of an integer that std::int64_t does not hold; nothing for any
/// other value.
std::optional<std::string> large_integer(const nlohmann::ordered_json& value);

}  // namespace caldera::detail
