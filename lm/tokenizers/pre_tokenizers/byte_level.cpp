#include "lm/tokenizers/pre_tokenizers/byte_level.h"

#include "lm/base/regex/regex.h"
#include "lm/tokenizers/pre_tokenizers/splitter.h"
#include "lm/tokenizers/vocabulary/byte_alphabet.h"

namespace caldera::detail {
namespace {

/// GPT-2's expression (https://github.com/openai/gpt-2/blob/master/src/encoder.py).
constexpr std::string_view kWords =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class ByteLevelPreTokenizer final : public PreTokenizer {
 public:
  ByteLevelPreTokenizer(bool add_prefix_space, std::unique_ptr<Regex> words)
      : add_prefix_space_(add_prefix_space), words_(std::move(words)) {}

  bool leave_byte_characters_out() override {
    map_ = false;
    return true;
  }

  void split(const Piece& piece, const PieceSink& sink) const override {
    if (add_prefix_space_ && !piece.text.starts_with(' ')) {
      const std::string prefixed = " " + std::string(piece.text);
      return cut({prefixed, piece.first}, sink);
    }
    cut(piece, sink);
  }

 private:
  void cut(const Piece& piece, const PieceSink& sink) const {
    if (!words_) return hand_out(piece, sink);
    std::string characters;
    const auto mapped = [&](const Piece& word) {
      if (!map_) return sink(word);
      characters.clear();
      append_byte_characters(word.text, characters);
      sink({characters, word.first});
    };
    const PieceSink next(mapped);
    Splitter splitter(piece, SplitBehavior::isolated, false, next);
    words_->for_each_match(piece.text, [&](const Regex::Match& m) { splitter.match(m.begin, m.end); });
    splitter.finish();
  }

  void hand_out(const Piece& word, const PieceSink& sink) const {
    if (!map_) return sink(word);
    const std::string characters = bytes_to_characters(word.text);
    sink({characters, word.first});
  }

  bool add_prefix_space_;
  bool map_ = true;
  std::unique_ptr<Regex> words_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_byte_level(bool add_prefix_space, bool use_regex) {
  auto words = use_regex ? std::make_unique<Regex>(kWords, Regex::Syntax::oniguruma, "ByteLevel") : nullptr;
  return std::make_unique<ByteLevelPreTokenizer>(add_prefix_space, std::move(words));
}

}  // namespace caldera::detail
