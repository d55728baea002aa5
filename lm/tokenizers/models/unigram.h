// SentencePiece's Unigram model. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lm/tokenizers/models/model.h"
#include "lm/tokenizers/vocabulary/byte_tokens.h"
#include "lm/tokenizers/vocabulary/byte_trie.h"

namespace caldera::detail {

/// Cuts a word into the tokens whose scores (log probabilities) sum to the most, by Viterbi's algorithm. A
/// character without a token costs 10 more than the worst token. A word is never cut into parts: of two ways
/// with the same tokens in another order, how their sum is rounded decides.
class UnigramModel final : public Model {
 public:
  struct Options {
    std::optional<std::int32_t> unknown_id;  ///< for a run of unknown characters; without it they are dropped
    bool byte_fallback = false;              ///< byte tokens for those instead
    /// Tokens that no text becomes (control tokens, say); by id. May be empty.
    std::vector<bool> hidden;
  };

  /// `scores` has one for each id below tokens.size(). Throws FileError, beginning with `where`, for a score
  /// that is not finite.
  UnigramModel(TokenTable tokens, std::vector<double> scores, Options options, const std::string& where);

  /// O(n * longest token).
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override;
  const TokenTable& tokens() const override { return tokens_; }

 private:
  void append_unknown(std::string_view text, std::vector<std::int32_t>& ids) const;

  TokenTable tokens_;
  std::vector<double> scores_;
  Options options_;
  ByteTokens byte_tokens_;
  ByteTrie trie_;
  double unknown_score_ = 0;
};

}  // namespace caldera::detail
