// The second stage of a tokenizer: cutting the text into words that the model sees one at a time. Private to
// training/text.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "training/text/tokenizer/unicode/text_pattern.h"

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

/// What becomes of the matches of a pattern.
enum class SplitBehavior : std::uint8_t {
  removed,
  isolated,              ///< words of their own
  merged_with_previous,  ///< the end of the word before
  merged_with_next,      ///< the beginning of the word after
  contiguous             ///< neighbours are one word
};

/// The pre-tokenizer that a tokenizer.json describes: Sequence, ByteLevel, Split, Whitespace,
/// WhitespaceSplit, Metaspace, BertPreTokenizer, Digits, Punctuation, CharDelimiterSplit, UnicodeScripts,
/// FixedLength; null gives nullptr. Throws FileError naming a type that is not known.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const nlohmann::json& config, const std::string& where);

std::unique_ptr<PreTokenizer> make_sequence(std::vector<std::unique_ptr<PreTokenizer>> steps);
/// Splits at the matches of `pattern`; with `invert`, at what is between them.
std::unique_ptr<PreTokenizer> make_split(TextPattern pattern, SplitBehavior behavior, bool invert);
/// Writes bytes as characters, after splitting by GPT-2's expression if `use_regex`.
std::unique_ptr<PreTokenizer> make_byte_level(bool add_prefix_space, bool use_regex);

enum class PrependScheme : std::uint8_t { always, first, never };
/// Makes spaces U+2581 (`replacement`), puts one before the text, and splits before each if `split`.
std::unique_ptr<PreTokenizer> make_metaspace(std::string replacement, PrependScheme scheme, bool split);
/// White space goes, and each punctuation character is a word.
std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer();

/// Reads the fields `prepend_scheme` and, of older files, `add_prefix_space`.
PrependScheme read_prepend_scheme(const JsonFields& fields);
/// Reads a field that holds one character, as UTF-8.
std::string read_character(const JsonFields& fields, const char* field, const char* otherwise);

}  // namespace caldera::detail
