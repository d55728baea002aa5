// Byte-pair encoding: the model of a tokenizer.json. Private to training/text.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace caldera::detail {

/// Largest id a vocabulary may use: far above any model's, and small enough to index by.
inline constexpr std::int64_t kMaxTokenId = (1 << 24) - 1;

/// A BPE model with byte fallback, as Hugging Face tokenizers defines it. Immutable once made.
class BpeModel {
 public:
  /// Reads the `model` object of a tokenizer.json. Throws FileError for another type, a malformed vocabulary
  /// or merge list, and options that are not supported (dropout, prefixes and suffixes of subwords).
  BpeModel(const nlohmann::json& config, const std::string& where);

  /// Appends the ids of one word, which must be UTF-8. O(n log n). Throws ValueError above 2^31 characters.
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const;

  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// The token's text, or nullptr for an id that has none.
  const std::string* token_of(std::int32_t id) const;
  /// One more than the largest id.
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }

 private:
  struct Merge {
    std::int32_t rank;
    std::int32_t id;
  };
  struct Pair {
    std::int32_t left;
    std::int32_t right;
    std::int32_t merged;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };

  void read_vocabulary(const nlohmann::json& config, const std::string& where);
  void read_merges(const nlohmann::json& config, const std::string& where);
  /// The ids of two tokens and of what they join to; nothing unless all three are in the vocabulary.
  std::optional<Pair> merge_of(std::string_view left, std::string_view right) const;
  /// The same from a merge written as one string.
  std::optional<Pair> split_merge(std::string_view text) const;
  const Merge* find_merge(std::int32_t left, std::int32_t right) const;
  /// The ids of the word's characters, before any merge.
  std::vector<std::int32_t> characters(std::string_view word) const;

  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> tokens_;  ///< by id; points into ids_
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::array<std::int32_t, 256> byte_ids_{};  ///< of the tokens "<0x00>".."<0xFF>", or -1
  std::optional<std::int32_t> unknown_id_;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
};

}  // namespace caldera::detail
