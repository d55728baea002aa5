// Turns of a conversation, and conversations without their first ones.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

namespace caldera {

/// Counts the turns at the beginning that a conversation can do without: what the user says up to the next
/// time, and then, behind what the user said last, each answer with the results of its calls but the last
/// one. What system and developer say first is none of them.
std::size_t count_old_turns(const nlohmann::ordered_json& messages);

/// Returns the messages without their first `count` turns; at most count_old_turns().
nlohmann::ordered_json without_old_turns(const nlohmann::ordered_json& messages, std::size_t count);

}  // namespace caldera
