#include "lm/formats/convert/tokenizer_files.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/formats/convert/tokenizer_vocabulary.h"
#include "lm/formats/gguf/gguf_file.h"
#include "lm/formats/model_files.h"
#include "lm/tokenizers/sources/read_gguf_vocabulary.h"

namespace caldera::detail {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Where GGUF's documentation keeps a whole tokenizer.json.
constexpr const char* kWholeTokenizer = "tokenizer.huggingface.json";
constexpr const char* kTemplate = "tokenizer.chat_template";

// What a folder may have beside config.json and weights that says how text goes in and comes out.
constexpr std::array kFiles{"tokenizer.json",
                            "tokenizer_config.json",
                            "special_tokens_map.json",
                            "added_tokens.json",
                            "generation_config.json",
                            "chat_template.jinja",
                            "chat_template.json",
                            "vocab.json",
                            "merges.txt",
                            "tekken.json",
                            "vocab.txt",
                            "tokenizer.model",
                            "modules.json",
                            "sentence_bert_config.json"};

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// The text of the token with this id in a vocabulary; null where there is none.
Json token_text(const GgufVocabulary& v, std::optional<std::int64_t> id) {
  if (!id || *id < 0 || static_cast<std::size_t>(*id) >= v.tokens.size()) return nullptr;
  return v.tokens[static_cast<std::size_t>(*id)];
}

std::vector<std::pair<std::string, std::string>> files_of_gguf(const fs::path& path) {
  std::vector<std::pair<std::string, std::string>> files;
  const GgufFile file = GgufFile::open(path);
  if (file.find("tokenizer.ggml.model") == nullptr) return files;
  const GgufVocabulary vocabulary = read_gguf_vocabulary(path);
  const auto whole = file.string(kWholeTokenizer);
  files.emplace_back("tokenizer.json", whole ? *whole : tokenizer_json_of(vocabulary, path.string()));
  Json config;
  config["bos_token"] = token_text(vocabulary, vocabulary.bos_id);
  config["eos_token"] = token_text(vocabulary, vocabulary.eos_id);
  config["unk_token"] = token_text(vocabulary, vocabulary.unknown_id);
  config["pad_token"] = token_text(vocabulary, vocabulary.pad_id);
  if (vocabulary.add_bos) config["add_bos_token"] = *vocabulary.add_bos;
  if (vocabulary.add_eos) config["add_eos_token"] = *vocabulary.add_eos;
  if (const auto text = file.string(kTemplate)) config["chat_template"] = *text;
  config["clean_up_tokenization_spaces"] = false;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  files.emplace_back("tokenizer_config.json",
                     config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return files;
}

/// chat_template.jinja, or what tokenizer_config.json has: a text, or a list of named ones of which "default"
/// is meant.
std::optional<std::string> chat_template_of(const fs::path& folder) {
  if (is_file(folder / "chat_template.jinja")) return read_text_file(folder / "chat_template.jinja");
  const fs::path config = folder / "tokenizer_config.json";
  if (!is_file(config)) return std::nullopt;
  const nlohmann::json json = read_json_object(config);
  const auto it = json.find("chat_template");
  if (it == json.end()) return std::nullopt;
  if (it->is_string()) return it->get<std::string>();
  if (!it->is_array()) return std::nullopt;
  for (const auto& item : *it)
    if (item.is_object() && item.value("name", Json()) == "default" && item.contains("template") &&
        item["template"].is_string())
      return item["template"].get<std::string>();
  return std::nullopt;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> tokenizer_files(const fs::path& path) {
  if (is_gguf_path(path)) return files_of_gguf(path);
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* name : kFiles)
    if (is_file(path / name)) files.emplace_back(name, read_text_file(path / name));
  return files;
}

void add_tokenizer(GgufWriter& writer, const fs::path& path) {
  if (is_gguf_path(path)) {
    const GgufFile file = GgufFile::open(path);
    for (const auto& [key, value] : file.metadata())
      if (key.starts_with("tokenizer.") && !writer.has(key)) writer.add(key, value);
    return;
  }
  if (is_file(path / "tokenizer.json")) {
    const std::string text = read_text_file(path / "tokenizer.json");
    writer.add(kWholeTokenizer, text);
    add_vocabulary(writer, text, path);
  }
  if (const auto text = chat_template_of(path)) writer.add(kTemplate, *text);
}

}  // namespace caldera::detail
