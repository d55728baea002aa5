#include "lm/chat/turns.h"

#include <algorithm>
#include <string>
#include <vector>

namespace caldera {
namespace {

/// A turn: messages from `begin` on, before `end`.
struct Turn {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<Turn> old_turns(const nlohmann::ordered_json& messages) {
  const auto begins_of = [&](const char* role, std::size_t from) {
    std::vector<std::size_t> begins;
    for (std::size_t i = from; i < messages.size(); ++i)
      if (messages[i].value("role", "") == role) begins.push_back(i);
    return begins;
  };
  std::vector<Turn> turns;
  const auto add = [&](const std::vector<std::size_t>& begins) {
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) turns.push_back({begins[i], begins[i + 1]});
  };
  const std::vector<std::size_t> said = begins_of("user", 0);
  add(said);
  if (!said.empty()) add(begins_of("assistant", said.back()));
  return turns;
}

}  // namespace

std::size_t count_old_turns(const nlohmann::ordered_json& messages) { return old_turns(messages).size(); }

nlohmann::ordered_json without_old_turns(const nlohmann::ordered_json& messages, std::size_t count) {
  std::vector<Turn> turns = old_turns(messages);
  turns.resize(std::min(count, turns.size()));
  nlohmann::ordered_json kept = nlohmann::ordered_json::array();
  std::size_t at = 0;
  const auto keep_to = [&](std::size_t end) {
    while (at < end) kept.push_back(messages[at++]);
  };
  for (const Turn& turn : turns) {
    keep_to(turn.begin);
    at = turn.end;
  }
  keep_to(messages.size());
  return kept;
}

}  // namespace caldera
