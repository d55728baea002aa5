// ByteTrie: finds which of many texts another text begins with. Private to lm/tokenizers/.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace caldera::detail {

/// A set of texts, each with a number of 0 or more. Immutable once made.
class ByteTrie {
 public:
  using Entry = std::pair<std::string_view, std::int32_t>;

  ByteTrie() = default;
  /// Empty texts are left out; of equal ones the last counts. The texts need not outlive the trie.
  explicit ByteTrie(std::vector<Entry> entries);

  /// Says where a walk along a text has got to.
  struct Position {
    std::uint32_t node = 0;
  };
  /// Takes one step; false where no text of the set goes on like that.
  bool step(Position& position, char c) const;
  /// The number of the text that ends at `position`, or -1.
  std::int32_t value(Position position) const { return nodes_.empty() ? -1 : nodes_[position.node].value; }
  /// Whether any text begins with `c`.
  bool begins(char c) const { return first_[static_cast<unsigned char>(c)] != 0; }

  /// Calls `visit(length, value)` for each text of the set that `text` begins with, the shortest first.
  template <typename Visit>
  void for_each_prefix(std::string_view text, Visit&& visit) const {
    Position position;
    for (std::size_t i = 0; i < text.size() && step(position, text[i]); ++i) {
      if (const auto found = value(position); found >= 0) visit(i + 1, found);
    }
  }

 private:
  struct Node {
    std::uint32_t children = 0;  ///< the first; the others follow it, by label
    std::int32_t value = -1;
    std::uint16_t count = 0;
    std::uint8_t label = 0;
  };
  std::vector<Node> nodes_;
  std::array<std::uint32_t, 256> first_{};  ///< the root's children by label; 0 is none
};

}  // namespace caldera::detail
