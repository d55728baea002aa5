#include "lm/tokenizers/decoders/sentencepiece_decoders.h"

#include "lm/base/unicode/utf8.h"
#include "lm/tokenizers/decoders/decoder_sequence.h"
#include "lm/tokenizers/vocabulary/byte_tokens.h"

namespace caldera::detail {
namespace {

using Tokens = std::vector<std::string>;

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(TextPattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Tokens decode(Tokens tokens) const override {
    for (auto& token : tokens) token = pattern_.replace_all(token, content_);
    return tokens;
  }
  void rewrite_inner(InnerToken& token) const override {
    if (is_utf8(token.bytes)) token.bytes = pattern_.replace_all(token.bytes, content_);
  }

 private:
  TextPattern pattern_;
  std::string content_;
};

/// Joins runs of byte tokens. A run that is not UTF-8 becomes one U+FFFD a byte, valid parts of it included:
/// that is what the reference does.
class ByteFallbackDecoder final : public Decoder {
 public:
  Tokens decode(Tokens tokens) const override {
    Tokens out;
    out.reserve(tokens.size());
    std::string run;
    const auto flush = [&] {
      if (run.empty()) return;
      if (is_utf8(run)) {
        out.push_back(run);
      } else {
        for (std::size_t i = 0; i < run.size(); ++i) out.emplace_back(kReplacementCharacter);
      }
      run.clear();
    };
    for (auto& token : tokens) {
      if (const auto byte = byte_of_token(token)) {
        run += *byte;
      } else {
        flush();
        out.push_back(std::move(token));
      }
    }
    flush();
    return out;
  }
  void rewrite_inner(InnerToken& token) const override {
    if (const auto byte = byte_of_token(token.bytes)) token.bytes.assign(1, *byte);
  }
};

class FuseDecoder final : public Decoder {
 public:
  Tokens decode(Tokens tokens) const override {
    std::string text;
    for (const auto& token : tokens) text += token;
    return {std::move(text)};
  }
  void rewrite_inner(InnerToken& token) const override { token.joined = true; }
};

class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string content, std::int64_t start, std::int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  Tokens decode(Tokens tokens) const override {
    for (auto& token : tokens) token = strip(token);
    return tokens;
  }
  void rewrite_inner(InnerToken& token) const override {
    if (!token.joined) token.bytes = strip(token.bytes);  // else the whole text's ends go, not this token's
  }

 private:
  std::string strip(std::string_view rest) const {
    for (auto n = start_; n > 0 && rest.starts_with(content_); --n) rest.remove_prefix(content_.size());
    for (auto n = stop_; n > 0 && rest.ends_with(content_); --n) rest.remove_suffix(content_.size());
    return std::string(rest);
  }

  std::string content_;
  std::int64_t start_;
  std::int64_t stop_;
};

class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(std::string replacement, bool drop_first)
      : replacement_(std::move(replacement)), drop_first_(drop_first) {}
  Tokens decode(Tokens tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = TextPattern(replacement_).replace_all(tokens[i], i == 0 && drop_first_ ? "" : " ");
    }
    return tokens;
  }
  void rewrite_inner(InnerToken& token) const override {
    token.bytes = TextPattern(replacement_).replace_all(token.bytes, " ");
  }

 private:
  std::string replacement_;
  bool drop_first_;
};

}  // namespace

std::unique_ptr<Decoder> make_replace_decoder(TextPattern pattern, std::string content) {
  return std::make_unique<ReplaceDecoder>(std::move(pattern), std::move(content));
}
std::unique_ptr<Decoder> make_byte_fallback_decoder() { return std::make_unique<ByteFallbackDecoder>(); }
std::unique_ptr<Decoder> make_fuse_decoder() { return std::make_unique<FuseDecoder>(); }
std::unique_ptr<Decoder> make_strip_decoder(std::string content, std::int64_t start, std::int64_t stop) {
  return std::make_unique<StripDecoder>(std::move(content), start, stop);
}
std::unique_ptr<Decoder> make_metaspace_decoder(std::string replacement, bool drop_first) {
  return std::make_unique<MetaspaceDecoder>(std::move(replacement), drop_first);
}

std::unique_ptr<Decoder> make_sentencepiece_decoder(bool strip_first_space) {
  std::vector<std::unique_ptr<Decoder>> steps;
  steps.push_back(make_replace_decoder(TextPattern(std::string("\xE2\x96\x81")), " "));
  steps.push_back(make_byte_fallback_decoder());
  steps.push_back(make_fuse_decoder());
  if (strip_first_space) steps.push_back(make_strip_decoder(" ", 1, 0));
  return make_sequence(std::move(steps));
}

}  // namespace caldera::detail
