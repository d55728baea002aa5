#include "lm/formats/folders/folder_weights.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/formats/folders/scheme_options.h"
#include "lm/formats/folders/schemes.h"
#include "lm/formats/weights/computed_weight.h"
#include "lm/formats/weights/float8.h"
#include "lm/formats/weights/plain_weight.h"

namespace caldera::detail {
namespace {

constexpr const char* kConfig = "quantization_config";
constexpr const char* kMlxConfig = "quantization";

/// A way to quantise, and what a config.json calls it.
struct Scheme {
  std::string_view method;
  void (*read)(FolderReader& reader, const JsonFields& options);
};

constexpr Scheme kSchemes[]{
    {"bitsandbytes", read_bitsandbytes},
    {"gptq", read_gptq},
    {"awq", read_awq},
    {"fp8", read_fp8},
    {"mxfp4", read_mxfp4},
    {"fbgemm_fp8", read_fp8},
    {"compressed-tensors", read_fp8},
    {"mlx", read_mlx},
};

/// The scheme of a configuration, and its options; no scheme where weights are plain.
struct Found {
  const Scheme* scheme = nullptr;
  const nlohmann::json* options = nullptr;
};

Found find_scheme(const nlohmann::json& config, const std::string& where) {
  const JsonFields fields(config, where);
  for (const char* name : {kConfig, kMlxConfig}) {
    if (!fields.has(name)) continue;
    if (fields.kind(name) != JsonKind::object) fields.fail(name, "must be an object or null");
    const JsonFields options = fields.object(name, where);
    // MLX's has no method, only what its weights are.
    std::string method = options.string("quant_method").value_or(options.has("group_size") ? "mlx" : "");
    if (method == "compressed-tensors" && options.string("format") != "float-quantized")
      method += " with format " + options.string("format").value_or("none");
    for (const Scheme& scheme : kSchemes) {
      if (scheme.method != method) continue;
      const std::string options_where = fmt::format("{}: {}", where, name);
      check_scheme_options(method, fields.object(name, options_where));
      return {&scheme, fields.find(name)};
    }
    fields.fail(name,
                fmt::format("names the method '{}', which is not supported (supported: bitsandbytes, gptq, "
                            "awq, fp8, mxfp4, compressed-tensors with format float-quantized, and MLX's)",
                            printable(method)));
  }
  return {};
}

StoredWeightPtr plain(const TensorInfo& info, std::span<const std::byte> bytes) {
  if (is_float8(info.foreign)) {
    return std::make_unique<ComputedWeight>(info.shape, std::string(type_name(info)),
                                            [=, type = info.foreign] { return float8_values(bytes, type); });
  }
  return std::make_unique<PlainWeight>(info.shape, info.dtype, ByteParts(bytes));
}

}  // namespace

std::string without_quantization(const std::string& config, const std::string& where) {
  nlohmann::json json = parse_json(config, where);
  if (!json.is_object()) return config;  // for its reader to refuse
  if (find_scheme(json, where).scheme == nullptr) return config;
  json.erase(kConfig);
  json.erase(kMlxConfig);
  return json.dump(2);
}

QuantizedFolder folder_weights(const ModelWeights& files, const std::string& config,
                               const std::string& where) {
  FolderReader reader(files);
  const nlohmann::json json = parse_json(config, where);
  if (json.is_object()) {
    const Found found = find_scheme(json, where);
    const std::string options_where = where + ": quantization_config";
    if (found.scheme != nullptr) found.scheme->read(reader, JsonFields(*found.options, options_where));
  }
  for (const std::string& name : reader.names())
    if (!reader.is_used(name)) reader.add(name, plain(files.info(name), files.bytes(name)));
  return {without_quantization(config, where), reader.take_weights()};
}

}  // namespace caldera::detail
