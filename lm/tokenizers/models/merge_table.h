// The merges of byte-pair encoding: which pairs of tokens join, to what, and in which order. Private to
// lm/tokenizers/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lm/tokenizers/vocabulary/token_table.h"

namespace caldera::detail {

struct Merge {
  std::int32_t rank;  ///< lower ranks come first
  std::int32_t id;    ///< of what the two join to
};

class MergeTable {
 public:
  void reserve(std::size_t merges);
  /// The last of several merges of one pair counts.
  void set(std::int32_t left, std::int32_t right, Merge merge);
  const Merge* find(std::int32_t left, std::int32_t right) const {
    if (slots_.empty()) return nullptr;
    const std::uint64_t key = key_of(left, right);
    const std::uint64_t hash = hash_of(key);
    // Most pairs that are asked for have no merge. That is what the bits say, which fit into a core's cache
    // where the table does not.
    if ((bits_[bit_of(hash) >> 6] >> (bit_of(hash) & 63) & 1) == 0) return nullptr;
    const Slot& slot = slots_[slot_of(key, hash)];
    return slot.key == kFree ? nullptr : &slot.merge;
  }
  std::size_t size() const { return size_; }

  template <typename Visit>
  void for_each(Visit&& visit) const {  ///< visit(left, right, merge), in no order
    for (const Slot& slot : slots_) {
      if (slot.key == kFree) continue;
      visit(static_cast<std::int32_t>(slot.key >> 32), static_cast<std::int32_t>(slot.key & 0xFFFFFFFFU),
            slot.merge);
    }
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge{};
  };
  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  static std::uint64_t hash_of(std::uint64_t key) {
    const std::uint64_t hash = (key ^ key >> 29) * 0x9E3779B97F4A7C15ULL;
    return hash ^ hash >> 32;
  }
  std::size_t slot_of(std::uint64_t key, std::uint64_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = static_cast<std::size_t>(hash) & mask;
    while (slots_[slot].key != key && slots_[slot].key != kFree) slot = (slot + 1) & mask;
    return slot;
  }
  std::size_t bit_of(std::uint64_t hash) const {
    return static_cast<std::size_t>(hash >> 32) & (bits_.size() * 64 - 1);
  }
  void grow(std::size_t slots);
  /// Returns false where the key was there already.
  bool put(const Slot& entry);

  std::vector<Slot> slots_;          ///< open addressing
  std::vector<std::uint64_t> bits_;  ///< four for each slot: whether any key has the hash
  std::size_t size_ = 0;
};

/// Merges of every two tokens whose texts join to a third, cut between characters, in the order of `rank_of`
/// (by id of what they join to; negative for a token that nothing joins to). That is how SentencePiece and
/// tiktoken, which keep no merges, join tokens.
MergeTable merges_by_rank(const TokenTable& tokens, const std::vector<std::int32_t>& rank_of);

}  // namespace caldera::detail
