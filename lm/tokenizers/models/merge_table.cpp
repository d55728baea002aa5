#include "lm/tokenizers/models/merge_table.h"

#include <bit>

#include "lm/base/unicode/characters.h"

namespace caldera::detail {
namespace {

/// Longest token that merges are looked for in: what is longer is no word of any vocabulary, and trying every
/// cut of it would take quadratic time.
constexpr std::size_t kMaxMergedBytes = 1024;

}  // namespace

void MergeTable::reserve(std::size_t merges) { grow(std::bit_ceil(merges * 2 + 16)); }

void MergeTable::grow(std::size_t slots) {
  if (slots <= slots_.size()) return;
  std::vector<Slot> old(slots);
  old.swap(slots_);
  bits_.assign(slots / 16, 0);
  for (const Slot& slot : old) {
    if (slot.key != kFree) put(slot);
  }
}

void MergeTable::set(std::int32_t left, std::int32_t right, Merge merge) {
  if (2 * (size_ + 1) > slots_.size()) grow(slots_.empty() ? 16 : slots_.size() * 2);
  if (put({key_of(left, right), merge})) ++size_;
}

bool MergeTable::put(const Slot& entry) {
  const std::uint64_t hash = hash_of(entry.key);
  Slot& slot = slots_[slot_of(entry.key, hash)];
  const bool added = slot.key == kFree;
  slot = entry;
  bits_[bit_of(hash) >> 6] |= std::uint64_t{1} << (bit_of(hash) & 63);
  return added;
}

MergeTable merges_by_rank(const TokenTable& tokens, const std::vector<std::int32_t>& rank_of) {
  MergeTable merges;
  merges.reserve(tokens.count() * 2);
  tokens.for_each([&](std::string_view text, std::int32_t id) {
    const std::int32_t rank = rank_of[static_cast<std::size_t>(id)];
    if (rank < 0 || text.size() > kMaxMergedBytes || text.empty()) return;
    for (std::size_t cut = first_character(text).bytes; cut < text.size();
         cut += first_character(text.substr(cut)).bytes) {
      const auto left = tokens.find(text.substr(0, cut));
      if (!left) continue;
      const auto right = tokens.find(text.substr(cut));
      if (right) merges.set(*left, *right, {rank, id});
    }
  });
  return merges;
}

}  // namespace caldera::detail
