#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/formats/convert/token_type.h"
#include "lm/formats/convert/tokenizer_vocabulary.h"
#include "lm/tokenizers/sources/expressions.h"

namespace caldera::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSpace = "\xE2\x96\x81";  // U+2581, which SentencePiece writes for a blank

/// What transformers' converter of SentencePiece vocabularies does: a token of two parts that are tokens both
/// is a merge of them, and those of higher scores come first.
Json merges_by_score(const GgufVocabulary& v) {
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t i = 0; i < v.tokens.size(); ++i) ids.emplace(v.tokens[i], i);
  struct Merge {
    float score;
    std::size_t left, right;
  };
  std::vector<Merge> merges;
  for (std::size_t i = 0; i < v.tokens.size(); ++i) {
    if (i < v.token_types.size() && v.token_types[i] != kNormal && v.token_types[i] != kUserDefined) continue;
    const std::string_view token = v.tokens[i];
    constexpr std::size_t kLongest = 256;  // of tokens: what takes the square of their length is bounded
    for (std::size_t cut = 1; cut < std::min(token.size(), kLongest); ++cut) {
      const auto left = ids.find(token.substr(0, cut));
      const auto right = ids.find(token.substr(cut));
      if (left != ids.end() && right != ids.end())
        merges.push_back({v.scores.at(i), left->second, right->second});
    }
  }
  std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) {
    if (a.score != b.score) return a.score > b.score;
    return std::pair(a.left, a.right) < std::pair(b.left, b.right);
  });
  Json out = Json::array();
  for (const Merge& m : merges) out.push_back(Json::array({v.tokens[m.left], v.tokens[m.right]}));
  return out;
}

Json vocabulary(const GgufVocabulary& v) {
  Json vocab = Json::object();
  for (std::size_t i = 0; i < v.tokens.size(); ++i) vocab.emplace(v.tokens[i], i);
  return vocab;
}

Json sentencepiece_model(const GgufVocabulary& v) {
  const auto unknown = static_cast<std::size_t>(v.unknown_id.value_or(0));
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", unknown < v.tokens.size() ? Json(v.tokens[unknown]) : Json(nullptr)},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", true},
          {"ignore_merges", false},
          {"vocab", vocabulary(v)},
          {"merges", merges_by_score(v)}};
}

Json added_tokens(const GgufVocabulary& v) {
  Json added = Json::array();
  for (std::size_t i = 0; i < v.token_types.size() && i < v.tokens.size(); ++i) {
    const std::int32_t type = v.token_types[i];
    if (type != kUnknown && type != kControl && type != kUserDefined) continue;
    added.push_back({{"id", i},
                     {"content", v.tokens[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", type != kUserDefined}});
  }
  return added;
}

/// The bos before a text and the eos after it, as a post-processor.
Json post_processor(const GgufVocabulary& v, bool add_bos) {
  const auto token = [&](std::optional<std::int64_t> id, bool wanted) -> const std::string* {
    if (!wanted || !id || *id < 0 || static_cast<std::size_t>(*id) >= v.tokens.size()) return nullptr;
    return &v.tokens[static_cast<std::size_t>(*id)];
  };
  const std::string* bos = token(v.bos_id, v.add_bos.value_or(add_bos));
  const std::string* eos = token(v.eos_id, v.add_eos.value_or(false));
  Json single = Json::array();
  Json pair = Json::array();
  Json specials = Json::object();
  const auto add_special = [&](const std::string* text, std::int64_t id, Json& to, int type) {
    to.push_back({{"SpecialToken", {{"id", *text}, {"type_id", type}}}});
    specials[*text] = {{"id", *text}, {"ids", {id}}, {"tokens", {*text}}};
  };
  for (const auto& [name, type] : {std::pair{"A", 0}, std::pair{"B", 1}}) {
    for (Json* to : {&single, &pair}) {
      if (to == &single && type == 1) continue;
      if (bos != nullptr) add_special(bos, *v.bos_id, *to, type);
      to->push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
      if (eos != nullptr) add_special(eos, *v.eos_id, *to, type);
    }
  }
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", specials}};
}

Json pattern(const char* text) { return {{"String", text}}; }

/// As transformers' LlamaConverter writes them.
Json sentencepiece_tokenizer(const GgufVocabulary& v) {
  const bool prefix = v.add_space_prefix.value_or(true);
  Json normalizers = Json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  normalizers.push_back({{"type", "Replace"}, {"pattern", pattern(" ")}, {"content", kSpace}});
  Json decoders = Json::array({{{"type", "Replace"}, {"pattern", pattern(kSpace)}, {"content", " "}},
                               {{"type", "ByteFallback"}},
                               {{"type", "Fuse"}}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens(v)},
          {"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
          {"pre_tokenizer", nullptr},
          {"post_processor", post_processor(v, true)},
          {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
          {"model", sentencepiece_model(v)}};
}

/// As the models' authors write them: words by regular expressions, their bytes in the byte-level alphabet.
Json byte_level_tokenizer(const GgufVocabulary& v, const PreTokenization& entry) {
  Json steps = Json::array();
  for (const std::string_view expression : entry.expressions)
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", expression}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  steps.push_back(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
  Json merges = Json::array();
  for (const std::string& merge : v.merges) {
    const std::size_t blank = merge.find(' ', 1);  // tokens of this alphabet hold none
    if (blank != merge.npos) merges.push_back({merge.substr(0, blank), merge.substr(blank + 1)});
  }
  const bool nfc = v.nfc.value_or(entry.nfc);
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens(v)},
          {"normalizer", nfc ? Json{{"type", "NFC"}} : Json(nullptr)},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
          {"post_processor", post_processor(v, entry.add_bos)},
          {"decoder",
           {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", entry.ignore_merges},
            {"vocab", vocabulary(v)},
            {"merges", merges}}}};
}

}  // namespace

std::string tokenizer_json_of(const GgufVocabulary& v, const std::string& where) {
  const PreTokenization* entry = v.model == "gpt2" ? find_pre_tokenization(v.pre) : nullptr;
  const bool sentencepiece = v.model == "llama" && v.scores.size() == v.tokens.size();
  if (!sentencepiece && (entry == nullptr || entry->add_sep))
    throw FileError(fmt::format("{}: no tokenizer.json can be made of a vocabulary of the kind '{}'{}", where,
                                printable(v.model),
                                v.pre.empty() ? "" : " with pre-tokenizer " + printable(v.pre)));
  try {
    const Json json = sentencepiece ? sentencepiece_tokenizer(v) : byte_level_tokenizer(v, *entry);
    return json.dump(1) + "\n";
  } catch (const nlohmann::json::exception&) {
    throw FileError(fmt::format("{}: the vocabulary is not UTF-8", where));
  }
}

}  // namespace caldera::detail
