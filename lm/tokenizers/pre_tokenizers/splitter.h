// Cuts a piece at matches. Private to lm/tokenizers/.
#pragma once

#include <string_view>
#include <vector>

#include "lm/base/unicode/characters.h"
#include "lm/tokenizers/pre_tokenizers/pre_tokenizer.h"

namespace caldera::detail {

/// Takes the matches in a piece, from left to right, and hands out the parts that a behaviour makes of them
/// and of what is between them.
class Splitter {
 public:
  /// Keeps references to `piece` and `sink`.
  Splitter(const Piece& piece, SplitBehavior behavior, bool invert, const PieceSink& sink)
      : piece_(piece), sink_(sink), behavior_(behavior), invert_(invert) {}

  void match(std::size_t begin, std::size_t end) {
    if (begin > done_) part(done_, begin, invert_);
    part(begin, end, !invert_);
    done_ = end;
  }
  void finish() {
    if (done_ < piece_.text.size()) part(done_, piece_.text.size(), invert_);
    if (pending_) give(begin_, end_);
  }

 private:
  /// The next stretch: a match or what is between two.
  void part(std::size_t begin, std::size_t end, bool is_match);
  void give(std::size_t begin, std::size_t end) const {
    if (begin < end) sink_({piece_.text.substr(begin, end - begin), piece_.first && begin == 0});
  }
  /// Holds a stretch back, as what comes after may join it.
  void hold(std::size_t begin, std::size_t end) {
    if (pending_) give(begin_, end_);
    begin_ = begin;
    end_ = end;
    pending_ = true;
  }

  const Piece& piece_;
  const PieceSink& sink_;
  SplitBehavior behavior_;
  bool invert_;
  std::size_t done_ = 0;
  bool pending_ = false;  ///< [begin_, end_) is held back
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool last_is_match_ = false;
};

/// Hands out the parts of `piece` that characters with `matches(char32_t)` make, each a match of its own.
template <typename Matches>
void split_at_characters(const Piece& piece, SplitBehavior behavior, const PieceSink& sink,
                         Matches&& matches) {
  Splitter splitter(piece, behavior, false, sink);
  for (std::size_t at = 0; at < piece.text.size();) {
    const Character c = first_character(piece.text.substr(at));
    if (matches(c.value)) splitter.match(at, at + c.bytes);
    at += c.bytes;
  }
  splitter.finish();
}

}  // namespace caldera::detail
