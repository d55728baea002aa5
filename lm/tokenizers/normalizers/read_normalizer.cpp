#include "lm/tokenizers/normalizers/read_normalizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/base64.h"
#include "lm/base/json_file.h"
#include "lm/base/regex/text_pattern.h"
#include "lm/base/unicode/characters.h"
#include "lm/tokenizers/normalizers/bert_normalizer.h"
#include "lm/tokenizers/normalizers/character_normalizers.h"
#include "lm/tokenizers/normalizers/precompiled.h"
#include "lm/tokenizers/normalizers/text_normalizers.h"

namespace caldera::detail {
namespace {

constexpr std::size_t kMostNormalizers = 64;  ///< of one sequence

std::unique_ptr<Normalizer> read_precompiled(const JsonFields& fields) {
  const auto text = fields.string("precompiled_charsmap").value_or("");
  if (text.empty()) return nullptr;
  const auto bytes = decode_base64(text);
  if (!bytes) fields.fail("precompiled_charsmap", "is not base64");
  return make_precompiled(*bytes, CharsmapMatch::shortest_of_cluster, fields.where());
}

}  // namespace

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
    return make_replace(read_pattern(fields), fields.require_string("content"));
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
  if (type == "ByteLevel") return make_byte_level_normalizer();
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> steps;
    const auto& list = fields.require_array("normalizers");
    if (list.size() > kMostNormalizers)
      fields.fail("normalizers", fmt::format("has more than {} steps", kMostNormalizers));
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
