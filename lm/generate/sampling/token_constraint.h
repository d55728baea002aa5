// TokenConstraint: what a text that is being generated may say next, such as a grammar allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace caldera {

/// A set of tokens: id i is bit i % 64 of word i / 64. Ids beyond the last word are not in it.
using TokenSet = std::span<const std::uint64_t>;

inline bool contains(TokenSet set, std::int64_t id) {
  const auto word = static_cast<std::size_t>(id / 64);
  return id >= 0 && word < set.size() && ((set[word] >> (id % 64)) & 1U) != 0;
}

/// Follows one sequence token by token and says which tokens may come next. Not for use from several threads
/// at once; constraints of different sequences are independent of each other.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  TokenConstraint& operator=(const TokenConstraint&) = delete;

  /// The tokens that may come next, those that end the text included. The set lives until the next call of
  /// any function of this object. Throws ValueError where nothing may come.
  virtual TokenSet allowed() = 0;
  /// Goes on by a token. Throws ValueError, and stays where it is, for one that is not allowed().
  virtual void accept(std::int32_t id) = 0;
  /// Another constraint at the same place: what drafts tokens goes ahead with it.
  virtual std::unique_ptr<TokenConstraint> clone() const = 0;

 protected:
  TokenConstraint() = default;
  TokenConstraint(const TokenConstraint&) = default;
};

}  // namespace caldera
