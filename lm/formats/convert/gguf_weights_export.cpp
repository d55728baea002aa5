// Weights as tensors of a GGUF file: what llama.cpp's converter does to them, and how its quantiser would
// choose types.
#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/formats/convert/gguf_export.h"
#include "lm/formats/convert/weight_bytes.h"
#include "lm/formats/gguf/ggml_type.h"
#include "lm/formats/quantize/encoders.h"

namespace caldera::detail {
namespace {

/// What bytes of a type are made by: a float, or a format of blocks.
struct Target {
  std::string_view name = "f32";
  std::uint32_t file_type = 0;  // llama.cpp's llama_ftype
  DType dtype = DType::f32;
  std::optional<QuantizedFormat> format;

  std::uint32_t ggml() const {
    if (format) return static_cast<std::uint32_t>(facts(*format).ggml_type);
    return dtype == DType::f16 ? ggml::kF16 : dtype == DType::bf16 ? ggml::kBF16 : ggml::kF32;
  }
};

/// The types that matrices can be stored as; the first is the default.
constexpr Target kTargets[] = {
    {"f16", 1, DType::f16, {}},
    {"f32", 0, DType::f32, {}},
    {"bf16", 32, DType::bf16, {}},
    {"q8_0", 7, DType::f32, QuantizedFormat::q8_0},
    {"q4_0", 2, DType::f32, QuantizedFormat::q4_0},
    {"q4_k", 14, DType::f32, QuantizedFormat::q4_k},
    {"q6_k", 18, DType::f32, QuantizedFormat::q6_k},
    {"mxfp4", 38, DType::f32, QuantizedFormat::mxfp4},
};

const Target& target_of(std::string_view type) {
  const auto* const found = std::ranges::find(kTargets, type, &Target::name);
  if (found == std::ranges::end(kTargets)) throw ValueError(fmt::format("GGUF: no type {} is written", type));
  return *found;
}

/// Vectors stay f32. Of the types of four bits the output matrix gets eight, as it says which token comes
/// next, and so does, of any type, a matrix whose rows are no whole blocks.
Target choose(const std::string& type, const std::string& name, const Shape& shape, bool tied) {
  if (shape.rank() != 2) return {};
  const bool is_output = name == "output.weight" || (tied && name == "token_embd.weight");
  Target target = target_of(type);
  if (target.format && *target.format != QuantizedFormat::q8_0 &&
      ((is_output && facts(*target.format).bits == 4) || shape[1] % facts(*target.format).block != 0))
    target = target_of("q8_0");
  if (target.format && shape[1] % facts(*target.format).block != 0) target = target_of("f16");
  return target;
}

class Exporter {
 public:
  Exporter(GgufWriter& writer, const GgufExport& model)
      : writer_(writer),
        files_(model.files),
        config_(model.config),
        family_(model.family),
        type_(model.type) {}

  MatrixCounts write() {
    const bool tied = config_.tie_word_embeddings;
    for (const std::string& name : files_.names()) {
      if (name.ends_with(".rotary_emb.inv_freq") || (tied && name == "lm_head.weight")) continue;
      auto gguf = to_gguf(family_, name);
      if (!gguf) gguf = to_gguf(family_, "model." + name);  // files of the model without its head
      const StoredWeight& weight = files_.weight(name);
      if (!gguf || !weight.is_floating())
        throw FileError(fmt::format("{}: tensor {} has no form in GGUF files of {}", files_.path().string(),
                                    printable(name), family_.architecture));
      const Target target = choose(type_, *gguf, weight.shape(), tied);
      if (weight.shape().rank() == 2 && target_of(type_).format) {
        ++counts_.all;
        if (!target.format) ++counts_.as_floats;
      }
      add(*gguf, name, weight, target);
    }
    return counts_;
  }

 private:
  void add(const std::string& gguf, const std::string& name, const StoredWeight& weight,
           const Target& target) {
    const std::int64_t heads = interleaved_heads(gguf);
    const double shift = gguf.ends_with("norm.weight") ? family_.norm_shift : 0;
    writer_.add_tensor(gguf, target.ggml(), weight.shape(), [&weight, name, target, heads, shift] {
      std::vector<float> values = weight.values();
      for (float& value : values) value += static_cast<float>(shift);
      if (heads > 0) values = interleaved(values, weight.shape()[0], heads, name);
      if (!target.format) return float_bytes(values, target.dtype, name);
      return encode_blocks(*target.format, values, weight.shape()[weight.shape().rank() - 1], name);
    });
  }

  std::int64_t interleaved_heads(const std::string& gguf) const {
    if (!family_.interleaved_rotary || !gguf.starts_with("blk.")) return 0;
    const std::string_view part = std::string_view(gguf).substr(gguf.find('.', 4) + 1);
    if (part == "attn_q.weight" || part == "attn_q.bias") return config_.num_attention_heads;
    if (part == "attn_k.weight" || part == "attn_k.bias") return config_.num_key_value_heads;
    return 0;
  }

  /// Rows as the file wants them: row j*d/2 + i of a head becomes row 2i + j.
  static std::vector<float> interleaved(const std::vector<float>& values, std::int64_t rows,
                                        std::int64_t heads, const std::string& name) {
    if (rows % (2 * heads) != 0)
      throw FileError(
          fmt::format("tensor {} has {} rows, which are not those of {} heads", name, rows, heads));
    const auto width = values.size() / static_cast<std::size_t>(rows);
    const std::int64_t half = rows / heads / 2;
    std::vector<float> out;
    out.reserve(values.size());
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t within = row % (2 * half);
      const std::int64_t from = row - within + within % 2 * half + within / 2;
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(from) * width);
      out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
    }
    return out;
  }

  GgufWriter& writer_;
  const ModelFiles& files_;
  const ModelConfig& config_;
  const GgufFamily& family_;
  const std::string& type_;
  MatrixCounts counts_;
};

}  // namespace

std::uint32_t gguf_file_type(const std::string& type) { return target_of(type).file_type; }

bool is_quantized_type(const std::string& type) { return target_of(type).format.has_value(); }

std::vector<std::string> gguf_weight_types() {
  std::vector<std::string> names;
  for (const Target& target : kTargets) names.emplace_back(target.name);
  return names;
}

MatrixCounts add_weights(GgufWriter& writer, const GgufExport& model) {
  return Exporter(writer, model).write();
}

}  // namespace caldera::detail
