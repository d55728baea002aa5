#include "lm/tokenizers/decoders/word_decoders.h"

#include <algorithm>

#include "lm/base/regex/text_pattern.h"
#include "lm/base/unicode/utf8.h"
#include "lm/tokenizers/vocabulary/byte_alphabet.h"

namespace caldera::detail {
namespace {

using Tokens = std::vector<std::string>;

std::string replaced(std::string_view text, const std::string& what, std::string_view with) {
  return what.empty() ? std::string(text) : TextPattern(what).replace_all(text, with);
}

/// What the reference does to each token of a text of separate words.
std::string clean_up(std::string text) {
  static constexpr std::pair<const char*, const char*> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [what, with] : kRules) text = replaced(text, what, with);
  return text;
}

class ByteLevelDecoder final : public Decoder {
 public:
  Tokens decode(Tokens tokens) const override {
    std::string bytes;
    for (const auto& token : tokens) bytes += byte_level_bytes(token);
    if (is_utf8(bytes)) return {std::move(bytes)};
    return {to_utf8(bytes)};
  }
  void rewrite_inner(InnerToken& token) const override {
    token.bytes = byte_level_bytes(token.bytes);
    token.joined = true;
  }
};

class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  Tokens decode(Tokens tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) tokens[i] = joined(tokens[i]);
      if (cleanup_) tokens[i] = clean_up(std::move(tokens[i]));
    }
    return tokens;
  }
  void rewrite_inner(InnerToken& token) const override {
    token.bytes = joined(token.bytes);
    if (cleanup_) token.bytes = clean_up(std::move(token.bytes));
  }

 private:
  std::string joined(const std::string& token) const {
    return token.starts_with(prefix_) ? token.substr(prefix_.size()) : " " + token;
  }

  std::string prefix_;
  bool cleanup_;
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  Tokens decode(Tokens tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = replaced(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    }
    return tokens;
  }
  void rewrite_inner(InnerToken& token) const override { token.bytes = replaced(token.bytes, suffix_, " "); }

 private:
  std::string suffix_;
};

class CtcDecoder final : public Decoder {
 public:
  CtcDecoder(std::string padding, std::string delimiter, bool cleanup)
      : padding_(std::move(padding)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}
  Tokens decode(Tokens tokens) const override {
    const auto repeated = std::unique(tokens.begin(), tokens.end());
    tokens.erase(repeated, tokens.end());
    for (auto& token : tokens) token = rewritten(token);
    std::erase(tokens, "");
    return tokens;
  }
  void rewrite_inner(InnerToken& token) const override { token.bytes = rewritten(token.bytes); }

 private:
  std::string rewritten(const std::string& token) const {
    std::string text = replaced(token, padding_, "");
    return cleanup_ ? replaced(clean_up(std::move(text)), delimiter_, " ") : text;
  }

  std::string padding_;
  std::string delimiter_;
  bool cleanup_;
};

}  // namespace

std::unique_ptr<Decoder> make_byte_level_decoder() { return std::make_unique<ByteLevelDecoder>(); }
std::unique_ptr<Decoder> make_wordpiece_decoder(std::string prefix, bool cleanup) {
  return std::make_unique<WordPieceDecoder>(std::move(prefix), cleanup);
}
std::unique_ptr<Decoder> make_bpe_decoder(std::string suffix) {
  return std::make_unique<BpeDecoder>(std::move(suffix));
}
std::unique_ptr<Decoder> make_ctc_decoder(std::string padding, std::string delimiter, bool cleanup) {
  return std::make_unique<CtcDecoder>(std::move(padding), std::move(delimiter), cleanup);
}

}  // namespace caldera::detail
