// TokenTrie: the texts of a vocabulary, ordered so that those with a common beginning are looked at together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace caldera::grammar {

/// A tree of bytes whose nodes lie one behind the other, a node before those below it. Does not change.
class TokenTrie {
 public:
  struct Node {
    std::uint8_t byte;
    std::uint16_t depth;   ///< bytes before this one
    std::uint32_t end;     ///< the node behind all that lie below
    std::uint32_t tokens;  ///< where its tokens begin: those whose text ends here
    std::uint32_t token_count;
  };

  /// The bytes of each token, by id; empty for one that has no text, which is left out, as is a token of more
  /// than 65,535 bytes.
  explicit TokenTrie(const std::vector<std::string>& token_bytes);

  const std::vector<Node>& nodes() const { return nodes_; }
  std::span<const std::int32_t> tokens(const Node& node) const {
    return std::span(tokens_).subspan(node.tokens, node.token_count);
  }
  /// The longest token, in bytes.
  std::size_t max_depth() const { return max_depth_; }
  /// The number of ids, those without text included.
  std::size_t vocabulary() const { return bytes_.size(); }
  const std::string& bytes(std::int32_t id) const { return bytes_[static_cast<std::size_t>(id)]; }

 private:
  std::vector<std::string> bytes_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> tokens_;
  std::size_t max_depth_ = 0;
};

}  // namespace caldera::grammar
