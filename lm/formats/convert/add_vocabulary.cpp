#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/formats/convert/token_type.h"
#include "lm/formats/convert/tokenizer_vocabulary.h"
#include "lm/tokenizers/sources/expressions.h"

namespace caldera::detail {
namespace {

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

  bool is_byte_level() const {
    const auto& unknown = at(model(), "unk_token");
    return at(model(), "type") == "BPE" && !flag("byte_fallback") && at(model(), "vocab").is_object() &&
           unknown.is_null();
  }

  /// The name that GGUF has for how the text is cut into words; null where it has none.
  const PreTokenization* pre_tokenization() const {
    std::vector<std::string> expressions;
    if (!collect_expressions(at(json_, "pre_tokenizer"), expressions)) return nullptr;
    const auto& normalizer = at(json_, "normalizer");
    const bool nfc = at(normalizer, "type") == "NFC";
    if (!normalizer.is_null() && !nfc) return nullptr;
    for (const char* name : kNames) {
      const PreTokenization* entry = find_pre_tokenization(name);
      if (entry != nullptr && std::ranges::equal(entry->expressions, expressions) && entry->nfc == nfc &&
          entry->ignore_merges == flag("ignore_merges"))
        return entry;
    }
    return nullptr;
  }

  /// As "left right".
  std::vector<std::string> merges() const {
    std::vector<std::string> texts;
    for (const auto& merge : at(model(), "merges")) {
      if (merge.is_string())
        texts.push_back(merge.get<std::string>());
      else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
        texts.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    }
    return texts;
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
      if (!put(text, id, flag("byte_fallback") && is_byte(text) ? kByte : kNormal)) return false;
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
    for (std::string& merge : merges()) {
      if (const std::size_t blank = merge.find(' '); blank != merge.npos) merge.erase(blank, 1);
      ranks.emplace(std::move(merge), rank++);
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
    const auto& processor = at(json_, "post_processor");
    const auto begins = [](const nlohmann::json& p) {
      const auto& single = at(p, "single");
      return single.is_array() && !single.empty() && !at(single.front(), "SpecialToken").is_null();
    };
    return begins(processor) || std::ranges::any_of(at(processor, "processors"), begins);
  }

 private:
  // Of those that share expressions the one that is known best.
  static constexpr std::array kNames{"llama-bpe",      "qwen2",       "gpt-2",    "smollm",    "dbrx",
                                     "stablelm2",      "gpt-4o",      "tekken",   "qwen35",    "deepseek-llm",
                                     "deepseek-coder", "deepseek-v3", "falcon",   "bloom",     "viking",
                                     "kimi-k2",        "seed-coder",  "superbpe", "bailingmoe"};

  /// GPT-2's, which a ByteLevel stage has of itself.
  static std::string_view gpt2_expression() { return find_pre_tokenization("gpt-2")->expressions[0]; }

  /// The expressions of a byte-level pre-tokenizer, step by step. False for any other.
  static bool collect_expressions(const nlohmann::json& step, std::vector<std::string>& expressions) {
    const auto& type = at(step, "type");
    if (type == "Sequence") {
      const auto& steps = at(step, "pretokenizers");
      return steps.is_array() && !steps.empty() && at(steps.back(), "type") == "ByteLevel" &&
             std::ranges::all_of(steps, [&](const auto& s) { return collect_expressions(s, expressions); });
    }
    if (type == "ByteLevel") {
      if (at(step, "add_prefix_space") == true) return false;
      if (at(step, "use_regex") != false) expressions.emplace_back(gpt2_expression());
      return true;
    }
    if (type == "Digits" && at(step, "individual_digits") == true) {
      expressions.emplace_back(R"(\p{N})");
      return true;
    }
    const auto& regex = at(at(step, "pattern"), "Regex");
    if (type != "Split" || !regex.is_string() || at(step, "behavior") != "Isolated" ||
        at(step, "invert") == true)
      return false;
    expressions.push_back(regex.get<std::string>());
    return true;
  }

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

/// The keys of a byte-level vocabulary, but for its tokens. False where GGUF has no name for how it cuts
/// words.
bool add_byte_level(GgufWriter& writer, const TokenizerFields& fields) {
  const PreTokenization* entry = fields.pre_tokenization();
  if (entry == nullptr) return false;
  writer.add("tokenizer.ggml.model", std::string("gpt2"));
  writer.add("tokenizer.ggml.pre", std::string(entry->name));
  writer.add("tokenizer.ggml.merges", fields.merges());
  return true;
}

void add_sentencepiece(GgufWriter& writer, const TokenizerFields& fields,
                       const std::vector<std::string>& tokens, const std::vector<std::int32_t>& types) {
  writer.add("tokenizer.ggml.model", std::string("llama"));
  writer.add("tokenizer.ggml.pre", std::string("default"));
  writer.add("tokenizer.ggml.scores", fields.scores(tokens));
  if (const auto unknown = std::ranges::find(types, std::int32_t{kUnknown}); unknown != types.end())
    writer.add("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(unknown - types.begin()));
  writer.add("tokenizer.ggml.add_space_prefix", fields.has_prefix());
}

}  // namespace

void add_vocabulary(GgufWriter& writer, std::string_view tokenizer_json,
                    const std::filesystem::path& folder) {
  const TokenizerFields fields(tokenizer_json);
  if (!fields.is_sentencepiece() && !fields.is_byte_level()) return;
  const nlohmann::json config = read_json_object(folder / "config.json");
  const std::string where = (folder / "config.json").string();
  const std::int64_t size = JsonFields(config, where).require_integer("vocab_size");
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  if (size < 1 || size > 1 << 24 || !fields.collect(tokens, types, static_cast<std::size_t>(size))) return;
  if (fields.is_sentencepiece())
    add_sentencepiece(writer, fields, tokens, types);
  else if (!add_byte_level(writer, fields))
    return;
  writer.add("tokenizer.ggml.tokens", std::move(tokens));
  writer.add("tokenizer.ggml.token_type", std::move(types));
  writer.add("tokenizer.ggml.add_bos_token", fields.begins_with_special());
}

}  // namespace caldera::detail
