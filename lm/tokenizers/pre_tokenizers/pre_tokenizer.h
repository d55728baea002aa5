// The second stage of a tokenizer: cutting the text into words that the model sees one at a time. Private to
// lm/tokenizers/.
#pragma once

#include <cstdint>
#include <string_view>

namespace caldera::detail {

/// A part of a text.
struct Piece {
  std::string_view text;  ///< UTF-8, not empty
  bool first = false;     ///< begins where the whole text begins
};

/// Takes pieces as they are cut. A reference to a function: it must not outlive the call it is passed to.
class PieceSink {
 public:
  template <typename Function>
  PieceSink(const Function& function)  // NOLINT: meant to be implicit
      : object_(&function), call_([](const void* object, const Piece& piece) {
          (*static_cast<const Function*>(object))(piece);
        }) {}
  void operator()(const Piece& piece) const { call_(object_, piece); }

 private:
  const void* object_;
  void (*call_)(const void*, const Piece&);
};

/// A step of cutting. Immutable; may be used from several threads at once.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;

  /// Hands the parts of `piece` to `sink`, in order, none of them empty. They hold until the call returns.
  virtual void split(const Piece& piece, const PieceSink& sink) const = 0;

  /// If the last thing that split does is to write the bytes of each word as characters of the byte-level
  /// alphabet, leaves that to the caller from now on and returns true.
  virtual bool leave_byte_characters_out() { return false; }
};

/// Says what becomes of the matches of a pattern.
enum class SplitBehavior : std::uint8_t {
  removed,
  isolated,              ///< words of their own
  merged_with_previous,  ///< the end of the word before
  merged_with_next,      ///< the beginning of the word after
  contiguous             ///< neighbours are one word
};

}  // namespace caldera::detail
