#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/tensor/error.h"
#include "training/io/json_file.h"
#include "training/text/tokenizer/normalizers/bert_normalizer.h"
#include "training/text/tokenizer/normalizers/character_normalizers.h"
#include "training/text/tokenizer/normalizers/normalizer.h"
#include "training/text/tokenizer/normalizers/precompiled.h"
#include "training/text/tokenizer/unicode/base64.h"
#include "training/text/tokenizer/unicode/characters.h"
#include "training/text/tokenizer/unicode/text_pattern.h"
#include "training/text/tokenizer/vocabulary/byte_alphabet.h"

namespace caldera::detail {
namespace {

constexpr std::size_t kMaxSteps = 64;  ///< of one sequence

class PrependNormalizer final : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string normalize(std::string text) const override {
    return text.empty() ? text : prefix_ + text;  // nothing stays nothing, as in the reference
  }

 private:
  std::string prefix_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(TextPattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::string normalize(std::string text) const override { return pattern_.replace_all(text, content_); }

 private:
  TextPattern pattern_;
  std::string content_;
};

class ByteLevelNormalizer final : public Normalizer {
 public:
  std::string normalize(std::string text) const override { return bytes_to_characters(text); }
};

class SequenceNormalizer final : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  std::string normalize(std::string text) const override {
    for (const auto& step : steps_) text = step->normalize(std::move(text));
    return text;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

std::unique_ptr<Normalizer> read_precompiled(const JsonFields& fields) {
  const auto text = fields.string("precompiled_charsmap").value_or("");
  if (text.empty()) return nullptr;
  const auto bytes = decode_base64(text);
  if (!bytes) fields.fail("precompiled_charsmap", "is not base64");
  return make_precompiled(*bytes, CharsmapMatch::shortest_of_cluster, fields.where());
}

}  // namespace

std::unique_ptr<Normalizer> make_sequence(std::vector<std::unique_ptr<Normalizer>> steps) {
  return std::make_unique<SequenceNormalizer>(std::move(steps));
}

std::unique_ptr<Normalizer> make_prepend(std::string prefix) {
  return std::make_unique<PrependNormalizer>(std::move(prefix));
}

std::unique_ptr<Normalizer> make_replace(std::string what, std::string with) {
  return std::make_unique<ReplaceNormalizer>(TextPattern(std::move(what)), std::move(with));
}

std::unique_ptr<Normalizer> read_normalizer(const nlohmann::json& config, const std::string& where) {
  if (config.is_null()) return nullptr;
  const JsonFields fields(config, where);
  const auto type = fields.require_string("type");
  if (type == "NFC") return make_normal_form(NormalForm::nfc);
  if (type == "NFD") return make_normal_form(NormalForm::nfd);
  if (type == "NFKC") return make_normal_form(NormalForm::nfkc);
  if (type == "NFKD") return make_normal_form(NormalForm::nfkd);
  if (type == "Prepend") return make_prepend(fields.require_string("prepend"));
  if (type == "Replace") {
    return std::make_unique<ReplaceNormalizer>(read_pattern(fields), fields.require_string("content"));
  }
  if (type == "Lowercase") return make_lowercase();
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Nmt") return make_nmt();
  if (type == "Strip") {
    return make_strip(fields.boolean("strip_left").value_or(true),
                      fields.boolean("strip_right").value_or(true));
  }
  if (type == "BertNormalizer") {
    const bool lowercase = fields.boolean("lowercase").value_or(true);
    return make_bert_normalizer({.clean_text = fields.boolean("clean_text").value_or(true),
                                 .space_ideographs = fields.boolean("handle_chinese_chars").value_or(true),
                                 .strip_accents = fields.boolean("strip_accents").value_or(lowercase),
                                 .lowercase = lowercase});
  }
  if (type == "Precompiled") return read_precompiled(fields);
  if (type == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> steps;
    const auto& list = fields.require_array("normalizers");
    if (list.size() > kMaxSteps) fields.fail("normalizers", fmt::format("has more than {} steps", kMaxSteps));
    for (const auto& step : list) {
      if (auto made = read_normalizer(step, where)) steps.push_back(std::move(made));
    }
    return make_sequence(std::move(steps));
  }
  throw FileError(fmt::format(
      "{}: normalizer '{}' is not supported (supported: Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, "
      "StripAccents, Replace, Prepend, BertNormalizer, Precompiled, Nmt, ByteLevel)",
      where, printable(type)));
}

}  // namespace caldera::detail
