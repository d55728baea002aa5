#include "lm/tokenizers/pre_tokenizers/character_splits.h"

#include <optional>

#include "lm/tokenizers/pre_tokenizers/splitter.h"

namespace caldera::detail {
namespace {

class WhiteSpaceSplit final : public PreTokenizer {
 public:
  void split(const Piece& piece, const PieceSink& sink) const override {
    split_at_characters(piece, SplitBehavior::removed, sink, is_white_space);
  }
};

class PunctuationSplit final : public PreTokenizer {
 public:
  explicit PunctuationSplit(SplitBehavior behavior) : behavior_(behavior) {}
  void split(const Piece& piece, const PieceSink& sink) const override {
    split_at_characters(piece, behavior_, sink, is_punctuation);
  }

 private:
  SplitBehavior behavior_;
};

class BertPreTokenizer final : public PreTokenizer {
 public:
  void split(const Piece& piece, const PieceSink& sink) const override {
    const auto words = [&](const Piece& word) {
      split_at_characters(word, SplitBehavior::isolated, sink, is_punctuation);
    };
    split_at_characters(piece, SplitBehavior::removed, words, is_white_space);
  }
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(bool individual)
      : behavior_(individual ? SplitBehavior::isolated : SplitBehavior::contiguous) {}
  void split(const Piece& piece, const PieceSink& sink) const override {
    split_at_characters(piece, behavior_, sink, is_numeric);
  }

 private:
  SplitBehavior behavior_;
};

class DelimiterSplit final : public PreTokenizer {
 public:
  explicit DelimiterSplit(char32_t delimiter) : delimiter_(delimiter) {}
  void split(const Piece& piece, const PieceSink& sink) const override {
    split_at_characters(piece, SplitBehavior::removed, sink, [&](char32_t c) { return c == delimiter_; });
  }

 private:
  char32_t delimiter_;
};

class UnicodeScripts final : public PreTokenizer {
 public:
  void split(const Piece& piece, const PieceSink& sink) const override {
    std::optional<int> last;
    std::optional<std::size_t> begin;  // of the word; spaces before the first are lost, as in the reference
    const auto give = [&](std::size_t end) {
      if (begin && *begin < end) {
        sink({piece.text.substr(*begin, end - *begin), piece.first && *begin == 0});
      }
      begin = end;
    };
    for (std::size_t at = 0; at < piece.text.size();) {
      const Character c = first_character(piece.text.substr(at));
      if (c.value != ' ') {
        const int script = c.value == 0x30FC || is_kana(c.value) ? han_script() : script_of(c.value);
        if (last != script) give(at);
        last = script;
      }
      at += c.bytes;
    }
    give(piece.text.size());
  }
};

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(std::size_t length) : length_(length) {}
  void split(const Piece& piece, const PieceSink& sink) const override {
    std::size_t begin = 0;
    std::size_t count = 0;
    for (std::size_t at = 0; at < piece.text.size();) {
      at += first_character(piece.text.substr(at)).bytes;
      if (++count < length_ && at < piece.text.size()) continue;
      sink({piece.text.substr(begin, at - begin), piece.first && begin == 0});
      begin = at;
      count = 0;
    }
  }

 private:
  std::size_t length_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_white_space_split() { return std::make_unique<WhiteSpaceSplit>(); }
std::unique_ptr<PreTokenizer> make_punctuation_split(SplitBehavior behavior) {
  return std::make_unique<PunctuationSplit>(behavior);
}
std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer() { return std::make_unique<BertPreTokenizer>(); }
std::unique_ptr<PreTokenizer> make_digits(bool individual) { return std::make_unique<Digits>(individual); }
std::unique_ptr<PreTokenizer> make_delimiter_split(char32_t delimiter) {
  return std::make_unique<DelimiterSplit>(delimiter);
}
std::unique_ptr<PreTokenizer> make_unicode_scripts() { return std::make_unique<UnicodeScripts>(); }
std::unique_ptr<PreTokenizer> make_fixed_length(std::size_t length) {
  return std::make_unique<FixedLength>(length);
}

}  // namespace caldera::detail
