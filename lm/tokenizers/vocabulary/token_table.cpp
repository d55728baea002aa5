#include "lm/tokenizers/vocabulary/token_table.h"

#include <bit>
#include <functional>

namespace caldera::detail {

void TokenTable::reserve(std::size_t tokens) {
  entries_.reserve(tokens);
  by_id_.reserve(tokens);
  texts_.reserve(tokens * 8);
  grow(std::bit_ceil(tokens * 2 + 16));
}

std::size_t TokenTable::hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

std::size_t TokenTable::slot_of(std::string_view text, std::size_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  for (;; slot = (slot + 1) & mask) {
    const Slot& s = slots_[slot];
    if (s.entry == 0 || (s.tag == tag_of(hash) && this->text(entries_[s.entry - 1]) == text)) return slot;
  }
}

void TokenTable::grow(std::size_t slots) {
  if (slots <= slots_.size()) return;
  slots_.assign(slots, Slot{});
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::size_t hash = hash_of(text(entries_[i]));
    slots_[slot_of(text(entries_[i]), hash)] = {static_cast<std::uint32_t>(i + 1), tag_of(hash)};
  }
}

TokenTable::Added TokenTable::add(std::string_view text, std::int32_t id) { return put(text, id, false); }

TokenTable::Added TokenTable::add_or_rename(std::string_view text, std::int32_t id) {
  return put(text, id, true);
}

TokenTable::Added TokenTable::put(std::string_view text, std::int32_t id, bool again) {
  if (2 * (entries_.size() + 1) > slots_.size()) grow(slots_.empty() ? 16 : slots_.size() * 2);
  if (has(id)) return Added::id_taken;
  const std::size_t hash = hash_of(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.entry != 0 && !again) return Added::text_taken;
  const auto index = static_cast<std::size_t>(id);
  entries_.push_back({texts_.size(), static_cast<std::uint32_t>(text.size()), id});
  texts_ += text;
  if (index >= by_id_.size()) by_id_.resize(index + 1, 0);
  slot = {static_cast<std::uint32_t>(entries_.size()), tag_of(hash)};
  by_id_[index] = slot.entry;
  return Added::yes;
}

std::optional<std::int32_t> TokenTable::find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t found = slots_[slot_of(text, hash_of(text))].entry;
  return found == 0 ? std::nullopt : std::optional(entries_[found - 1].id);
}

std::optional<std::string_view> TokenTable::text_of(std::int32_t id) const {
  if (!has(id)) return std::nullopt;
  return text(entries_[by_id_[static_cast<std::size_t>(id)] - 1]);
}

}  // namespace caldera::detail
