#include "lm/chat/model_chat_templates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/formats/gguf/gguf_file.h"

namespace caldera {
namespace {

using detail::JsonFields;
namespace fs = std::filesystem;

// Larger than any template may be: what goes beyond is refused when it is parsed, with a better message.
constexpr std::uint64_t kMaxTemplateFile = std::uint64_t{16} << 20;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

nlohmann::json read_optional(const fs::path& path) {
  return is_there(path) ? detail::read_json_object(path) : nlohmann::json::object();
}

/// `chat_template` of a JSON file: a text, or [{"name": ..., "template": ...}].
void add_from_json(const nlohmann::json& json, const fs::path& path,
                   std::vector<StoredChatTemplate>& templates) {
  const std::string where = path.string();
  const JsonFields fields(json, where);
  const nlohmann::json* value = fields.find("chat_template");
  if (value == nullptr) return;
  if (value->is_string()) {
    templates.push_back({"default", value->get<std::string>()});
    return;
  }
  if (!value->is_array()) fields.fail("chat_template", "must be a string or a list of named templates");
  for (const nlohmann::json& entry : *value) {
    if (!entry.is_object())
      fields.fail("chat_template", "holds an entry that is no object with 'name' and 'template'");
    const std::string inner = where + ": chat_template";
    const JsonFields named(entry, inner);
    templates.push_back({named.require_string("name"), named.require_string("template")});
  }
}

void add_from_files(const fs::path& dir, std::vector<StoredChatTemplate>& templates) {
  const fs::path main = dir / "chat_template.jinja";
  if (is_there(main)) templates.push_back({"default", read_text_file(main, kMaxTemplateFile)});
  const fs::path more = dir / "additional_chat_templates";
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(more, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".jinja") files.push_back(entry->path());
  std::ranges::sort(files);
  for (const fs::path& file : files)
    templates.push_back({file.stem().string(), read_text_file(file, kMaxTemplateFile)});
}

/// The fields of `json` that name tokens: NAME_token, a text or an object with its `content`.
void add_tokens(const nlohmann::json& json, const fs::path& path,
                std::map<std::string, std::string>& special_tokens) {
  const std::string where = path.string();
  const JsonFields fields(json, where);
  for (const auto& [name, value] : json.items()) {
    if (!name.ends_with("_token")) continue;
    if (value.is_string())
      special_tokens.emplace(name, value.get<std::string>());
    else if (value.is_object() && value.contains("content"))
      special_tokens.emplace(name, JsonFields(value, where).require_string("content"));
  }
}

/// The keys of a GGUF file that give the id of a token, and what templates call it.
struct TokenKey {
  const char* key;
  const char* name;
};
constexpr TokenKey kGgufTokens[] = {
    {"tokenizer.ggml.bos_token_id", "bos_token"},       {"tokenizer.ggml.eos_token_id", "eos_token"},
    {"tokenizer.ggml.unknown_token_id", "unk_token"},   {"tokenizer.ggml.padding_token_id", "pad_token"},
    {"tokenizer.ggml.seperator_token_id", "sep_token"}, {"tokenizer.ggml.mask_token_id", "mask_token"}};

/// tokenizer.chat_template, and those of more names in tokenizer.chat_template.NAME.
ModelChatTemplates read_gguf(const fs::path& path) {
  const detail::GgufFile file = detail::GgufFile::open(path);
  ModelChatTemplates result{path.string(), {}, {}};
  const std::string key = "tokenizer.chat_template";
  if (const auto source = file.string(key)) result.templates.push_back({"default", *source});
  for (const auto& [name, value] : file.metadata()) {
    const auto text = value.string();
    if (name.starts_with(key + '.') && text)
      result.templates.push_back({name.substr(key.size() + 1), std::string(*text)});
  }
  const detail::GgufValue* list = file.find("tokenizer.ggml.tokens");
  if (list == nullptr) return result;
  const auto tokens = list->strings();
  if (!tokens) file.fail("tokenizer.ggml.tokens", "must be a list of strings");
  for (const TokenKey& token : kGgufTokens) {
    const auto id = file.integer(token.key);
    if (id && *id >= 0 && static_cast<std::uint64_t>(*id) < tokens->size())
      result.special_tokens.emplace(token.name, (*tokens)[static_cast<std::size_t>(*id)]);
  }
  return result;
}

}  // namespace

const std::string& ModelChatTemplates::source(std::string_view name, bool with_tools) const {
  if (templates.empty())
    throw ValueError(
        fmt::format("{}: the model has no chat template; give it one (chat_template.jinja in "
                    "its folder), or use a model that was made for conversations",
                    where));
  const auto named = [&](std::string_view wanted) {
    return std::ranges::find(templates, wanted, &StoredChatTemplate::name);
  };
  auto found = templates.end();
  if (!name.empty()) {
    found = named(name);
  } else {
    if (with_tools) found = named("tool_use");
    if (found == templates.end()) found = named("default");
    if (found == templates.end() && templates.size() == 1) found = templates.begin();
  }
  if (found != templates.end()) return found->source;
  std::vector<std::string> known;
  for (const StoredChatTemplate& t : templates) known.push_back(detail::printable(t.name));
  throw ValueError(fmt::format("{}: there is no chat template named '{}' (there are: {})", where,
                               name.empty() ? "default" : detail::printable(name), fmt::join(known, ", ")));
}

void ModelChatTemplates::add_special_tokens(ChatTemplateInput& input) const {
  for (const auto& [name, text] : special_tokens) {
    if (name == "bos_token") {
      if (!input.bos_token) input.bos_token = text;
    } else if (name == "eos_token") {
      if (!input.eos_token) input.eos_token = text;
    } else if (!input.variables.contains(name)) {
      input.variables[name] = text;
    }
  }
}

ModelChatTemplates load_chat_templates(const fs::path& model) {
  if (model.extension() == ".gguf") return read_gguf(model);
  std::error_code ignored;
  if (!fs::is_directory(model, ignored))
    throw FileError(fmt::format("{}: there is no such model folder", model.string()));
  ModelChatTemplates result{model.string(), {}, {}};
  const fs::path config_path = model / "tokenizer_config.json";
  const nlohmann::json config = read_optional(config_path);
  add_from_files(model, result.templates);
  if (result.templates.empty()) {
    const fs::path processor = model / "chat_template.json";
    add_from_json(read_optional(processor), processor, result.templates);
  }
  if (result.templates.empty()) add_from_json(config, config_path, result.templates);
  add_tokens(config, config_path, result.special_tokens);
  const fs::path map = model / "special_tokens_map.json";
  add_tokens(read_optional(map), map, result.special_tokens);
  return result;
}

}  // namespace caldera
