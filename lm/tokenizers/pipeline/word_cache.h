// WordCache: the token ids of words that have come before. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caldera::detail {

/// Remembers words and their ids, up to some megabytes; then it forgets all of them. Not for use from several
/// threads at once.
class WordCache {
 public:
  /// Longest word, in bytes, that is worth remembering.
  static constexpr std::size_t kMaxWord = 64;

  WordCache();

  /// The ids of `word`, valid until the next insert; nothing where it is not known.
  std::optional<std::span<const std::int32_t>> find(std::string_view word, std::uint64_t hash) const;
  void insert(std::string_view word, std::uint64_t hash, std::span<const std::int32_t> ids);

  static std::uint64_t hash_of(std::string_view word);

 private:
  struct Entry {
    std::uint64_t hash;
    std::uint32_t text;
    std::uint32_t ids;
    std::uint16_t bytes;
    std::uint16_t count;
  };
  /// A place in the hash table. A text of words that never come again looks for each of them in vain: that
  /// reads these few bytes alone.
  struct Slot {
    std::uint32_t entry = 0;  ///< 1 + an index into entries_; 0: free
    std::uint32_t tag = 0;    ///< some bits of the hash
  };
  std::size_t slot_of(std::string_view word, std::uint64_t hash) const;
  void grow();

  std::vector<Slot> slots_;  ///< open addressing
  std::vector<Entry> entries_;
  std::string texts_;
  std::vector<std::int32_t> ids_;
};

/// Caches for as many threads as encode at a time. Safe to use from several threads.
class WordCachePool {
 public:
  std::unique_ptr<WordCache> take();
  void give_back(std::unique_ptr<WordCache> cache);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
};

}  // namespace caldera::detail
