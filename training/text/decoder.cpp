#include "training/text/decoder.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/tensor/error.h"
#include "training/io/json_file.h"
#include "training/text/normalizer.h"
#include "training/text/utf8.h"

namespace caldera::detail {
namespace {

using Tokens = std::vector<std::string>;

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Tokens decode(Tokens tokens) const override {
    for (auto& token : tokens) token = replace_all(token, pattern_, content_);
    return tokens;
  }

 private:
  std::string pattern_;
  std::string content_;
};

/// The byte that a token such as "<0x0A>" stands for.
std::optional<char> byte_of(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned value = 0;
  const char* end = token.data() + 5;
  const auto [stop, error] = std::from_chars(token.data() + 3, end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return static_cast<char>(value);
}

/// Joins runs of byte tokens. A run that is not UTF-8 becomes one U+FFFD a byte, valid parts of it included:
/// that is what the reference does.
class ByteFallbackDecoder final : public Decoder {
 public:
  Tokens decode(Tokens tokens) const override {
    Tokens out;
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
      if (const auto byte = byte_of(token)) {
        run += *byte;
      } else {
        flush();
        out.push_back(std::move(token));
      }
    }
    flush();
    return out;
  }
};

class FuseDecoder final : public Decoder {
 public:
  Tokens decode(Tokens tokens) const override {
    std::string text;
    for (const auto& token : tokens) text += token;
    return {std::move(text)};
  }
};

/// Removes up to `start` leading and up to `stop` trailing copies of one character from each string.
class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string content, std::int64_t start, std::int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  Tokens decode(Tokens tokens) const override {
    for (auto& token : tokens) {
      std::string_view rest = token;
      for (auto n = start_; n > 0 && rest.starts_with(content_); --n) rest.remove_prefix(content_.size());
      for (auto n = stop_; n > 0 && rest.ends_with(content_); --n) rest.remove_suffix(content_.size());
      token = std::string(rest);
    }
    return tokens;
  }

 private:
  std::string content_;
  std::int64_t start_;
  std::int64_t stop_;
};

class SequenceDecoder final : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> steps) : steps_(std::move(steps)) {}
  Tokens decode(Tokens tokens) const override {
    for (const auto& step : steps_) tokens = step->decode(std::move(tokens));
    return tokens;
  }

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(const nlohmann::json& config, const std::string& where) {
  if (config.is_null()) return nullptr;
  const JsonFields fields(config, where);
  const auto type = fields.require_string("type");
  if (type == "Replace") {
    return std::make_unique<ReplaceDecoder>(string_pattern(config, where), fields.require_string("content"));
  }
  if (type == "ByteFallback") return std::make_unique<ByteFallbackDecoder>();
  if (type == "Fuse") return std::make_unique<FuseDecoder>();
  if (type == "Strip") {
    auto content = fields.require_string("content");
    if (content.empty() || utf8_character(content) != content.size()) {
      fields.fail("content", "of a Strip decoder must be one character");
    }
    return std::make_unique<StripDecoder>(std::move(content), fields.require_integer("start"),
                                          fields.require_integer("stop"));
  }
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Decoder>> steps;
    for (const auto& step : fields.require_array("decoders")) {
      if (auto made = make_decoder(step, where)) steps.push_back(std::move(made));
    }
    return std::make_unique<SequenceDecoder>(std::move(steps));
  }
  throw FileError(fmt::format(
      "{}: decoder '{}' is not supported (supported: Sequence, Replace, ByteFallback, Fuse, Strip)", where,
      printable(type)));
}

}  // namespace caldera::detail
