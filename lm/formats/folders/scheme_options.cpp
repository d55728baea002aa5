#include "lm/formats/folders/scheme_options.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "lm/formats/config/family_fields.h"

namespace caldera::detail {
namespace {

using Name = std::string_view;

/// Of who made the file, of modules that are left as they are (their tensors say so), of how to run it.
constexpr Name kOfAll[]{"quant_method",   "method",  "modules_to_not_convert",
                        "ignored_layers", "ignore",  "backend",
                        "meta",           "version", "dataset",
                        "dtype"};
constexpr Name kBitsAndBytes[]{"load_in_4bit",
                               "_load_in_4bit",
                               "load_in_8bit",
                               "_load_in_8bit",
                               "bnb_4bit_compute_dtype",
                               "bnb_4bit_quant_storage",
                               "bnb_4bit_quant_type",
                               "bnb_4bit_use_double_quant",
                               "llm_int8_enable_fp32_cpu_offload",
                               "llm_int8_has_fp16_weight",
                               "llm_int8_skip_modules",
                               "llm_int8_threshold"};
/// How GPTQ came by its codes, which does not change what they mean, and what they are.
constexpr Name kGptq[]{"bits",
                       "group_size",
                       "checkpoint_format",
                       "format",
                       "dynamic",
                       "sym",
                       "desc_act",
                       "static_groups",
                       "true_sequential",
                       "act_group_aware",
                       "damp_percent",
                       "damp_auto_increment",
                       "mse",
                       "v2",
                       "v2_alpha",
                       "lm_head",
                       "pack_dtype",
                       "tokenizer",
                       "batch_size",
                       "block_name_to_quantize",
                       "module_name_preceding_first_block",
                       "modules_in_block_to_quantize",
                       "cache_block_outputs",
                       "pad_token_id",
                       "model_seqlen",
                       "model_name_or_path",
                       "model_file_base_name",
                       "use_cuda_fp16",
                       "use_exllama",
                       "disable_exllama",
                       "exllama_config",
                       "max_input_length"};
constexpr Name kAwq[]{"bits",    "w_bit",           "group_size",       "q_group_size",  "zero_point",
                      "do_fuse", "modules_to_fuse", "fuse_max_seq_len", "exllama_config"};
constexpr Name kFp8[]{"activation_scheme", "activation_scale_ub", "fmt", "scale_fmt", "weight_block_size"};
constexpr Name kCompressed[]{"config_groups",       "format",          "global_compression_ratio",
                             "quantization_status", "sparsity_config", "weight_block_size"};
constexpr Name kMxfp4[]{"dequantize"};
constexpr Name kMlx[]{"group_size", "bits", "mode"};

std::span<const Name> options_of(Name method) {
  if (method == "bitsandbytes") return kBitsAndBytes;
  if (method == "gptq") return kGptq;
  if (method == "awq") return kAwq;
  if (method == "fp8" || method == "fbgemm_fp8") return kFp8;
  if (method == "compressed-tensors") return kCompressed;
  return method == "mxfp4" ? std::span<const Name>(kMxfp4) : std::span<const Name>(kMlx);
}

}  // namespace

void check_scheme_options(Name method, const JsonFields& options) {
  const auto holds = [](std::span<const Name> names, Name name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const std::string& name : options.names()) {
    const nlohmann::json* value = options.find(name.c_str());
    if (value == nullptr || holds(kOfAll, name) || holds(options_of(method), name) || is_off(*value))
      continue;
    // MLX has settings of a module under its name.
    if (method == "mlx" && (value->is_object() || value->is_boolean())) continue;
    options.fail(printable(name).c_str(), "is not known: it may change what the weights are");
  }
  if (options.kind("sparsity_config") == JsonKind::object && !options.is_unset("sparsity_config") &&
      options.object("sparsity_config", options.where()).string("format").value_or("dense") != "dense")
    options.fail("sparsity_config", "asks for a format other than dense, which is not supported");
  if (options.string("pack_dtype").value_or("int32") != "int32")
    options.fail("pack_dtype", "is not int32, which is not supported");
}

}  // namespace caldera::detail
