// The tokens of a vocabulary: ids by text and texts by id. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caldera::detail {

/// Largest id a vocabulary may use: far above any model's, and small enough to index by.
inline constexpr std::int64_t kMaxTokenId = (1 << 24) - 1;
/// Longest text a token may have: far above any model's, and short enough to look for at every place of a
/// text.
inline constexpr std::size_t kMaxTokenBytes = 4096;

/// A table of texts and ids. Looking up is safe from several threads; adding is not.
class TokenTable {
 public:
  enum class Added : std::uint8_t { yes, id_taken, text_taken };

  void reserve(std::size_t tokens);
  /// `id` must be in 0..kMaxTokenId. Adds nothing where the id or the text has its token already.
  Added add(std::string_view text, std::int32_t id);
  /// Adds a text that may have a token: then the text is looked up as the new one.
  Added add_or_rename(std::string_view text, std::int32_t id);

  std::optional<std::int32_t> find(std::string_view text) const;
  /// The text of `id`; nothing where no token has it. Valid until the next add.
  std::optional<std::string_view> text_of(std::int32_t id) const;
  bool has(std::int32_t id) const {
    return id >= 0 && static_cast<std::size_t>(id) < by_id_.size() &&
           by_id_[static_cast<std::size_t>(id)] != 0;
  }

  /// One more than the largest id.
  std::int64_t size() const { return static_cast<std::int64_t>(by_id_.size()); }
  /// Number of tokens.
  std::size_t count() const { return entries_.size(); }

  /// Calls `visit(text, id)` for each token in the order in which they were added.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& entry : entries_) visit(text(entry), entry.id);
  }

 private:
  struct Entry {
    std::uint64_t begin;  ///< in texts_
    std::uint32_t bytes;
    std::int32_t id;
  };
  std::string_view text(const Entry& entry) const {
    return std::string_view(texts_).substr(static_cast<std::size_t>(entry.begin), entry.bytes);
  }
  Added put(std::string_view text, std::int32_t id, bool again);
  /// A place in the hash table: 1 + an index into entries_, or 0, and some bits of the text's hash, without
  /// which most searches that come to nothing would read another token's text.
  struct Slot {
    std::uint32_t entry = 0;
    std::uint32_t tag = 0;
  };
  static std::size_t hash_of(std::string_view text);
  static std::uint32_t tag_of(std::size_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
  std::size_t slot_of(std::string_view text, std::size_t hash) const;
  void grow(std::size_t slots);

  std::string texts_;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;           ///< open addressing
  std::vector<std::uint32_t> by_id_;  ///< 1 + an index into entries_, or 0
};

}  // namespace caldera::detail
