#include "lm/formats/convert/convert.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/formats/config/read_config.h"
#include "lm/formats/convert/gguf_export.h"
#include "lm/formats/convert/tokenizer_files.h"
#include "lm/formats/convert/weight_bytes.h"
#include "lm/formats/model_files.h"
#include "lm/formats/quantize/encoders.h"
#include "lm/formats/safetensors/safetensors.h"
#include "lm/models/registry.h"

namespace caldera {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kGroup = 64;  // mlx.core.quantize's default

/// A configuration that leaves nothing to the defaults of its family's class, which readers of other formats
/// do not have, or have otherwise.
struct CompleteConfig {
  ModelConfig config;
  Json json;
};

/// Throws FileError for a model that Caldera would not run: what it does not know of, no other format is
/// told.
CompleteConfig complete_config(const ModelFiles& files) {
  const std::unique_ptr<CausalLM> model = make_text_model(files.path(), Device::cpu());
  model->check_weights(files);
  CompleteConfig complete{model->config(), Json::parse(files.config())};
  const auto text = complete.json.find("text_config");
  Json& part = text != complete.json.end() && text->is_object() ? *text : complete.json;
  const Json full = Json::parse(detail::config_json(complete.config, {}));
  for (const auto& [name, value] : full.items()) {
    // Which tokens begin and end a text other files say too, and weights have their own type.
    if (name == "bos_token_id" || name == "eos_token_id" || name == "torch_dtype") continue;
    const auto given = part.find(name);
    if (given == part.end() || (given->is_null() && !value.is_null())) part[name] = value;
  }
  return complete;
}

DType dtype_of_name(const std::string& type) {
  if (type == "f16") return DType::f16;
  return type == "bf16" ? DType::bf16 : DType::f32;
}

template <class T>
std::vector<std::byte> raw(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

const StoredWeight& floating_weight(const ModelFiles& files, const std::string& name) {
  const StoredWeight& weight = files.weight(name);
  if (!weight.is_floating())
    throw FileError(fmt::format("{}: tensor {} is {}, no weight", files.path().string(),
                                detail::printable(name), weight.type()));
  return weight;
}

TensorToMake as_floats(const ModelFiles& files, const std::string& name, DType dtype) {
  const StoredWeight& weight = floating_weight(files, name);
  return {name, dtype, weight.shape(),
          [&weight, name, dtype] { return detail::float_bytes(weight.values(), dtype, name); }};
}

/// Whether mlx-lm would quantise it, were its rows whole groups: a table or a linear layer; not what chooses
/// experts, and no table of positions.
bool is_quantizable(const std::string& name, const Shape& shape) {
  return shape.rank() == 2 && name.ends_with(".weight") && !name.ends_with("norm.weight") &&
         !name.ends_with("mlp.gate.weight") && !name.ends_with("mlp.router.weight") &&
         name.find("position") == name.npos && !name.ends_with("wpe.weight");
}

/// Codes, scales and biases. Each encodes the matrix again: one pass through the file for each of the three
/// is what keeping no more than one weight in memory costs.
void add_affine(std::vector<TensorToMake>& tensors, const ModelFiles& files, const std::string& name,
                std::int64_t bits) {
  const StoredWeight& weight = floating_weight(files, name);
  const Shape& shape = weight.shape();
  const std::string module = name.substr(0, name.size() - std::string_view(".weight").size());
  const DType scales = weight.natural_dtype();
  const auto encode = [&weight, shape, bits, name] {
    return detail::encode_affine(weight.values(), shape[1], kGroup, bits, name);
  };
  tensors.push_back(
      {name, DType::u32, Shape{shape[0], shape[1] * bits / 32}, [encode] { return raw(encode().codes); }});
  const Shape groups{shape[0], shape[1] / kGroup};
  tensors.push_back({module + ".scales", scales, groups,
                     [=] { return detail::float_bytes(encode().scales, scales, name); }});
  tensors.push_back({module + ".biases", scales, groups,
                     [=] { return detail::float_bytes(encode().biases, scales, name); }});
}

/// A folder that was made for files, and goes again if none have come into it.
class NewFolder {
 public:
  NewFolder(fs::path path, bool is_new) : path_(std::move(path)), is_new_(is_new) {}
  ~NewFolder() {
    std::error_code ignored;
    if (is_new_ && fs::is_empty(path_, ignored)) fs::remove(path_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

 private:
  fs::path path_;
  bool is_new_;
};

/// config.json of the new folder.
std::string new_config(const CompleteConfig& complete, const ConvertOptions& options, const std::string& type,
                       bool quantised) {
  Json json = complete.json;
  if (options.to == ModelFormat::mlx && quantised) {
    const Json quantization{{"group_size", kGroup}, {"bits", type == "affine4" ? 4 : 8}, {"mode", "affine"}};
    json["quantization"] = quantization;
    json["quantization_config"] = quantization;
  } else if (options.to != ModelFormat::mlx) {
    json.erase("dtype");
    json["torch_dtype"] = name(dtype_of_name(type));
  }
  return json.dump(2) + "\n";
}

Converted write_folder(const ModelFiles& files, const CompleteConfig& complete, const fs::path& out,
                       const ConvertOptions& options, const std::string& type) {
  std::vector<TensorToMake> tensors;
  Converted converted;
  for (const std::string& name : files.names()) {
    if (name.ends_with(".rotary_emb.inv_freq")) continue;
    const Shape& shape = files.weight(name).shape();
    const bool counts = options.to == ModelFormat::mlx && is_quantizable(name, shape);
    const bool in_groups = counts && shape[1] % kGroup == 0;
    if (counts) ++converted.matrices;
    if (counts && !in_groups) ++converted.matrices_as_floats;
    if (in_groups)
      add_affine(tensors, files, name, type == "affine4" ? 4 : 8);
    else if (options.to == ModelFormat::mlx)
      tensors.push_back(as_floats(files, name, floating_weight(files, name).natural_dtype()));
    else
      tensors.push_back(as_floats(files, name, dtype_of_name(type)));
  }
  const std::string config =
      new_config(complete, options, type, converted.matrices > converted.matrices_as_floats);
  std::error_code error;
  const NewFolder folder(out, fs::create_directories(out, error));
  if (error) throw FileError(fmt::format("{}: cannot create the folder: {}", out.string(), error.message()));
  StagedFiles staged;
  write_safetensors(staged, out / "model.safetensors", tensors,
                    {{"format", options.to == ModelFormat::mlx ? "mlx" : "pt"}});
  add_tokenizer_files(staged, files.path(), out);
  staged.add_text(out / "config.json", config);
  staged.commit();
  converted.out = out;
  converted.tensors = tensors.size();
  converted.bytes = fs::file_size(out / "model.safetensors", error);
  return converted;
}

Converted write_gguf(const ModelFiles& files, const CompleteConfig& complete, const fs::path& out,
                     const std::string& type) {
  const detail::JsonDocument document(complete.json.dump(), files.config_where());
  const detail::GgufExport model{files, document.fields(), complete.config,
                                 detail::gguf_family_of(document.fields()), type};
  detail::GgufWriter writer;
  detail::add_configuration(writer, model);
  detail::add_tokenizer(writer, files.path());
  const detail::MatrixCounts matrices = detail::add_weights(writer, model);
  StagedFiles staged;
  writer.write(staged, out);
  staged.commit();
  std::error_code error;
  return {out, writer.tensor_count(), fs::file_size(out, error), matrices.all, matrices.as_floats};
}

}  // namespace

std::vector<std::string> weight_types(ModelFormat format) {
  if (format == ModelFormat::gguf) return detail::gguf_weight_types();
  if (format == ModelFormat::mlx) return {"affine4", "affine8"};
  return {"f32", "f16", "bf16"};
}

void add_tokenizer_files(StagedFiles& files, const fs::path& path, const fs::path& folder) {
  for (const auto& [name, text] : detail::tokenizer_files(path)) files.add_text(folder / name, text);
}

Converted convert_model(const fs::path& path, const fs::path& out, const ConvertOptions& options) {
  const std::vector<std::string> types = weight_types(options.to);
  const std::string type = options.type.empty() ? types.front() : options.type;
  if (std::ranges::find(types, type) == types.end())
    throw ValueError(fmt::format("this format has no type {} (it has: {})", type, fmt::join(types, ", ")));
  const ModelFiles files = ModelFiles::open(path);
  const CompleteConfig complete = complete_config(files);
  return options.to == ModelFormat::gguf ? write_gguf(files, complete, out, type)
                                         : write_folder(files, complete, out, options, type);
}

}  // namespace caldera
