#include "training/convert/tokenizer_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "engine/tensor/error.h"
#include "training/io/json_file.h"

namespace caldera::detail {
namespace {

using Json = nlohmann::ordered_json;

// Of tokenizer.ggml.token_type.
enum TokenType : std::int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

constexpr const char* kSpace = "\xE2\x96\x81";  // U+2581, which SentencePiece writes for a blank

// ---- a GGUF vocabulary as tokenizer.json

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

Json sentencepiece_model(const GgufVocabulary& v) {
  Json vocab = Json::object();
  for (std::size_t i = 0; i < v.tokens.size(); ++i) vocab.emplace(v.tokens[i], i);
  const auto unknown = static_cast<std::size_t>(v.unknown_id.value_or(0));
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", unknown < v.tokens.size() ? Json(v.tokens[unknown]) : Json(nullptr)},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", true},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
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
Json post_processor(const GgufVocabulary& v) {
  const auto token = [&](std::optional<std::int64_t> id, bool wanted) -> const std::string* {
    if (!wanted || !id || *id < 0 || static_cast<std::size_t>(*id) >= v.tokens.size()) return nullptr;
    return &v.tokens[static_cast<std::size_t>(*id)];
  };
  const std::string* bos = token(v.bos_id, v.add_bos.value_or(true));
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
          {"post_processor", post_processor(v)},
          {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
          {"model", sentencepiece_model(v)}};
}

// ---- tokenizer.json as a GGUF vocabulary

/// Fields of a tokenizer.json that is well-formed as far as they go; whatever is not is left to its reader.
class TokenizerFields {
 public:
  explicit TokenizerFields(std::string_view text) : json_(parse_json(text, "tokenizer.json")) {}

  const nlohmann::json& model() const { return at(json_, "model"); }
  bool flag(const char* name) const {
    const auto& value = at(model(), name);
    return value.is_boolean() && value.get<bool>();
  }
  bool is_sentencepiece() const {
    return at(model(), "type") == "BPE" && flag("byte_fallback") && at(model(), "vocab").is_object();
  }

  /// Texts by id, and their types. Empty where ids have gaps that are no padding.
  bool collect(std::vector<std::string>& tokens, std::vector<std::int32_t>& types, std::size_t size) const {
    tokens.assign(size, {});
    types.assign(size, kUnused);
    const auto put = [&](const std::string& text, const nlohmann::json& id, std::int32_t type) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= size) return false;
      tokens[id.get<std::size_t>()] = text;
      types[id.get<std::size_t>()] = type;
      return true;
    };
    for (const auto& [text, id] : at(model(), "vocab").items())
      if (!put(text, id, is_byte(text) ? kByte : kNormal)) return false;
    for (const auto& token : at(json_, "added_tokens")) {
      const bool special = at(token, "special") == true;
      const auto& content = at(token, "content");
      if (!content.is_string() || !put(content, at(token, "id"), special ? kControl : kUserDefined))
        return false;
      if (content == at(model(), "unk_token")) types[at(token, "id").get<std::size_t>()] = kUnknown;
    }
    for (std::size_t i = 0; i < size; ++i)
      if (tokens[i].empty()) tokens[i] = fmt::format("[PAD{}]", i);
    return true;
  }

  /// The higher, the earlier a token's merge comes; tokens that no merge makes come first.
  std::vector<float> scores(const std::vector<std::string>& tokens) const {
    std::unordered_map<std::string, std::size_t> ranks;
    std::size_t rank = 0;
    for (const auto& merge : at(model(), "merges")) {
      std::string whole;
      if (merge.is_string()) {
        whole = merge.get<std::string>();
        if (const std::size_t blank = whole.find(' '); blank != whole.npos) whole.erase(blank, 1);
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        whole = merge[0].get<std::string>() + merge[1].get<std::string>();
      }
      ranks.emplace(std::move(whole), rank++);
    }
    std::vector<float> scores(tokens.size(), 0);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (const auto it = ranks.find(tokens[i]); it != ranks.end())
        scores[i] = -static_cast<float>(it->second);
    return scores;
  }

  bool has_prefix() const {
    return json_.value("normalizer", nlohmann::json()).dump().find("Prepend") != std::string::npos;
  }
  /// Whether the post-processor puts something before a text.
  bool begins_with_special() const {
    const auto& single = at(at(json_, "post_processor"), "single");
    return single.is_array() && !single.empty() && single.front().is_object() &&
           single.front().contains("SpecialToken");
  }

 private:
  static const nlohmann::json& at(const nlohmann::json& object, const char* name) {
    static const nlohmann::json kNone;
    const auto it = object.is_object() ? object.find(name) : object.end();
    return object.is_object() && it != object.end() ? *it : kNone;
  }
  static bool is_byte(const std::string& text) {
    return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>');
  }

  nlohmann::json json_;
};

}  // namespace

std::string tokenizer_json_of(const GgufVocabulary& v, const std::string& where) {
  if (v.model != "llama" || v.scores.size() != v.tokens.size())
    throw FileError(fmt::format("{}: no tokenizer.json can be made of a vocabulary of the kind '{}'{}", where,
                                printable(v.model),
                                v.pre.empty() ? "" : " with pre-tokenizer " + printable(v.pre)));
  try {
    return sentencepiece_tokenizer(v).dump(1) + "\n";
  } catch (const nlohmann::json::exception&) {
    throw FileError(fmt::format("{}: the vocabulary is not UTF-8", where));
  }
}

void add_vocabulary(GgufWriter& writer, std::string_view tokenizer_json,
                    const std::filesystem::path& folder) {
  const TokenizerFields fields(tokenizer_json);
  if (!fields.is_sentencepiece()) return;
  const nlohmann::json config = read_json_object(folder / "config.json");
  const std::string where = (folder / "config.json").string();
  const std::int64_t size = JsonFields(config, where).require_integer("vocab_size");
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  if (size < 1 || size > 1 << 24 || !fields.collect(tokens, types, static_cast<std::size_t>(size))) return;
  writer.add("tokenizer.ggml.model", std::string("llama"));
  writer.add("tokenizer.ggml.pre", std::string("default"));
  writer.add("tokenizer.ggml.scores", fields.scores(tokens));
  if (const auto unknown = std::ranges::find(types, std::int32_t{kUnknown}); unknown != types.end())
    writer.add("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(unknown - types.begin()));
  writer.add("tokenizer.ggml.tokens", std::move(tokens));
  writer.add("tokenizer.ggml.token_type", std::move(types));
  writer.add("tokenizer.ggml.add_bos_token", fields.begins_with_special());
  writer.add("tokenizer.ggml.add_space_prefix", fields.has_prefix());
}

}  // namespace caldera::detail
