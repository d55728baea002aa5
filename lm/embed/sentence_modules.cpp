#include "lm/embed/sentence_modules.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/formats/gguf/gguf_file.h"
#include "lm/formats/model_files.h"

namespace caldera {
namespace {

using detail::JsonFields;
using detail::printable;

/// A folder of the model's own: no way out of it.
std::filesystem::path inner_folder(const std::filesystem::path& dir, const std::string& name,
                                   const std::string& where) {
  if (name.empty() || name == "." || name == ".." || name.find_first_of(std::string("/\\\0", 3)) != name.npos)
    throw FileError(
        fmt::format("{}: module path '{}' is not a folder in the model's folder", where, printable(name)));
  return dir / name;
}

Pooling read_pooling(const JsonFields& fields) {
  constexpr std::array<std::pair<const char*, Pooling>, 4> kModes{
      {{"pooling_mode_cls_token", Pooling::cls},
       {"pooling_mode_mean_tokens", Pooling::mean},
       {"pooling_mode_max_tokens", Pooling::max},
       {"pooling_mode_lasttoken", Pooling::last}}};
  for (const char* other : {"pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens"})
    if (fields.boolean(other).value_or(false)) fields.fail(other, "is true, which is not supported");
  std::optional<Pooling> chosen;
  if (const auto named = fields.string("pooling_mode")) {
    try {
      chosen = pooling_of(*named);
    } catch (const ValueError&) {
      fields.fail("pooling_mode", fmt::format("is '{}', which is not supported (supported: mean, cls, "
                                              "lasttoken, max)",
                                              printable(*named)));
    }
  }
  for (const auto& [field, pooling] : kModes) {
    if (!fields.boolean(field).value_or(false)) continue;
    if (chosen && *chosen != pooling)
      fields.fail(field, "is one of several poolings, which is not supported");
    chosen = pooling;
  }
  if (!chosen) fields.fail("pooling_mode", "is missing, and no pooling_mode_... is true");
  return *chosen;
}

DenseModule read_dense(const JsonFields& fields, const std::filesystem::path& folder) {
  constexpr std::int64_t kMost = 1 << 20;
  DenseModule dense{folder, fields.require_integer("in_features"), fields.require_integer("out_features"),
                    fields.boolean("bias").value_or(true), false};
  if (dense.in < 1 || dense.in > kMost) fields.fail("in_features", "is out of its domain");
  if (dense.out < 1 || dense.out > kMost) fields.fail("out_features", "is out of its domain");
  const std::string activation =
      fields.string("activation_function").value_or("torch.nn.modules.activation.Tanh");
  dense.tanh = activation.ends_with(".Tanh");
  if (!dense.tanh && !activation.ends_with(".Identity"))
    fields.fail(
        "activation_function",
        fmt::format("is '{}', which is not supported (supported: Tanh, Identity)", printable(activation)));
  return dense;
}

void read_module(const JsonFields& module, const std::filesystem::path& dir, SentenceModules& modules) {
  const std::string type = module.require_string("type");
  const std::string kind = type.substr(type.rfind('.') + 1);
  if (kind == "Transformer") return;  // the model itself
  if (kind == "Normalize") {
    modules.normalized = true;
    return;
  }
  if (kind != "Pooling" && kind != "Dense")
    module.fail("type",
                fmt::format("is '{}', which is not supported (supported: Transformer, Pooling, Dense, "
                            "Normalize)",
                            printable(type)));
  const std::filesystem::path folder = inner_folder(dir, module.require_string("path"), module.where());
  const std::string where = (folder / "config.json").string();
  const detail::JsonDocument config(read_text_file(where), where);
  if (kind == "Dense") {
    modules.dense.push_back(read_dense(config.fields(), folder));
  } else {
    modules.pooling = read_pooling(config.fields());
    modules.include_prompt = config.fields().boolean("include_prompt").value_or(true);
  }
}

void read_prompts(const JsonFields& fields, SentenceModules& modules) {
  if (fields.kind("prompts") == detail::JsonKind::object) {
    const std::string where = fields.where() + ": prompts";
    const JsonFields prompts = fields.object("prompts", where);
    for (const std::string& name : prompts.names())
      modules.prompts[name] = prompts.string(name.c_str()).value_or("");
  }
  modules.default_prompt = fields.string("default_prompt_name").value_or("");
  if (!modules.default_prompt.empty() && !modules.prompts.contains(modules.default_prompt))
    fields.fail("default_prompt_name", "names none of the prompts");
}

/// What llama.cpp's converter keeps of the folder; llama.h numbers the ways.
std::optional<Pooling> gguf_pooling(const detail::GgufFile& file) {
  const std::string key = file.string("general.architecture").value_or("") + ".pooling_type";
  const auto type = file.integer(key);
  if (!type || *type == 0) return std::nullopt;
  switch (*type) {
    case 1:
      return Pooling::mean;
    case 2:
      return Pooling::cls;
    case 3:
      return Pooling::last;
    default:
      file.fail(key,
                fmt::format("is {}, which is not supported (supported: 1, mean; 2, cls; 3, last)", *type));
  }
}

}  // namespace

SentenceModules SentenceModules::from_folder(const std::filesystem::path& model_dir) {
  SentenceModules modules;
  if (detail::is_gguf_path(model_dir)) {
    modules.pooling = gguf_pooling(detail::GgufFile::open(model_dir));
    return modules;
  }
  std::error_code ignored;
  const auto exists = [&](const char* file) { return std::filesystem::exists(model_dir / file, ignored); };
  if (exists("modules.json")) {
    const std::string where = (model_dir / "modules.json").string();
    const nlohmann::json list = detail::parse_json(read_text_file(where), where);
    if (!list.is_array()) throw FileError(fmt::format("{}: the JSON root is not a list", where));
    for (const nlohmann::json& entry : list) read_module(JsonFields(entry, where), model_dir, modules);
  }
  if (exists("sentence_bert_config.json")) {
    const std::string where = (model_dir / "sentence_bert_config.json").string();
    const detail::JsonDocument config(read_text_file(where), where);
    modules.max_length = config.fields().integer("max_seq_length");
    if (modules.max_length && *modules.max_length < 1)
      config.fields().fail("max_seq_length", "must be positive");
  }
  if (exists("config.json")) {
    const std::string where = (model_dir / "config.json").string();
    const detail::JsonDocument config(read_text_file(where), where);
    modules.matryoshka_dimensions = config.fields().integers("matryoshka_dimensions");
    modules.matryoshka =
        config.fields().boolean("is_matryoshka").value_or(!modules.matryoshka_dimensions.empty());
  }
  if (exists("config_sentence_transformers.json")) {
    const std::string where = (model_dir / "config_sentence_transformers.json").string();
    const detail::JsonDocument config(read_text_file(where), where);
    read_prompts(config.fields(), modules);
  }
  return modules;
}

}  // namespace caldera
