#include "lm/formats/gguf/gguf_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/formats/gguf/gguf_config.h"
#include "lm/formats/weights/changed_weight.h"
#include "lm/formats/weights/packed_weight.h"
#include "lm/formats/weights/plain_weight.h"

namespace caldera::detail {
namespace {

std::optional<DType> plain_type(std::uint32_t id) {
  switch (id) {
    case ggml::kF32:
      return DType::f32;
    case ggml::kF16:
      return DType::f16;
    case ggml::kBF16:
      return DType::bf16;
    case ggml::kF64:
      return DType::f64;
    case ggml::kI8:
      return DType::i8;
    case ggml::kI16:
      return DType::i16;
    case ggml::kI32:
      return DType::i32;
    case ggml::kI64:
      return DType::i64;
    default:
      return std::nullopt;
  }
}

// Experts are weights of their own: what names and views of them take must not outgrow a hostile file.
constexpr std::int64_t kMostExperts = 4096;

class Reader {
 public:
  Reader(std::span<const GgufFile> files, const GgufFamily& family) : files_(files), family_(family) {}

  std::vector<std::pair<std::string, StoredWeightPtr>> read() {
    for (const GgufFile& file : files_) {
      for (const GgufTensor& tensor : file.tensors()) {
        if (is_rope_factors(tensor.name)) continue;
        if (tensor.name.find("_exps.") != tensor.name.npos &&
            (add_experts(file, tensor) || add_stacked(file, tensor)))
          continue;
        add(file, tensor);
      }
    }
    return std::move(weights_);
  }

 private:
  [[noreturn]] static void fail(const GgufFile& file, const GgufTensor& tensor, const std::string& problem) {
    throw FileError(fmt::format("{}: tensor '{}' {}", file.path().string(), printable(tensor.name), problem));
  }

  void add(const GgufFile& file, const GgufTensor& tensor) {
    const std::string name = to_hugging_face(family_, tensor.name).value_or(tensor.name);
    ByteParts bytes(tensor.bytes);
    if (const std::int64_t heads = interleaved_heads(tensor); heads > 0)
      bytes = rows_in_order(tensor.bytes, half_rotary_order(file, tensor, heads));
    ValueChange change;
    if (tensor.name.ends_with("norm.weight")) change.added = family_.norm_shift;
    change.transposed = family_.transposed && tensor.shape.rank() == 2 && tensor.name.starts_with("blk.");
    StoredWeightPtr weight = make(file, tensor, tensor.shape, std::move(bytes));
    if (!change.is_none()) weight = std::make_unique<ChangedWeight>(std::move(weight), change);
    weights_.emplace_back(name, std::move(weight));
  }

  static StoredWeightPtr make(const GgufFile& file, const GgufTensor& tensor, const Shape& shape,
                              ByteParts bytes) {
    if (const auto dtype = plain_type(tensor.type->id))
      return std::make_unique<PlainWeight>(shape, *dtype, std::move(bytes));
    const auto format = quantized_format_of_ggml(tensor.type->id);
    if (!format) {
      fail(file, tensor,
           fmt::format("has the type {}, which is not supported (supported: {})", tensor.type->name,
                       supported()));
    }
    if (shape.rank() != 2 && shape.rank() != 3)
      fail(file, tensor,
           fmt::format("of shape {} is {}, but no matrix", shape.to_string(), tensor.type->name));
    std::vector<PackedPart> parts;
    parts.push_back({DType::u8, std::move(bytes), {}});
    return std::make_unique<PackedWeight>(shape, QuantizedLayout{*format, 0, 1}, std::move(parts));
  }

  static std::string supported() {
    std::vector<std::string_view> names;
    for (std::uint32_t id = 0; id < 64; ++id) {
      const GgmlType* type = find_ggml_type(id);
      if (type != nullptr && (plain_type(id) || quantized_format_of_ggml(id))) names.push_back(type->name);
    }
    return fmt::format("{}", fmt::join(names, " "));
  }

  /// Heads of a projection whose rows llama.cpp's converter permuted; 0 for any other tensor.
  std::int64_t interleaved_heads(const GgufTensor& tensor) const {
    if (!family_.interleaved_rotary || !tensor.name.starts_with("blk.")) return 0;
    const std::string_view name = std::string_view(tensor.name).substr(tensor.name.find('.', 4) + 1);
    const bool is_q = name == "attn_q.weight" || name == "attn_q.bias";
    const bool is_k = name == "attn_k.weight" || name == "attn_k.bias";
    if (!is_q && !is_k) return 0;
    const std::string prefix = std::string(family_.architecture) + ".attention.";
    const auto heads = files_.front().integer_of_layers(prefix + "head_count").value_or(0);
    return is_q ? heads : files_.front().integer_of_layers(prefix + "head_count_kv").value_or(heads);
  }

  /// Where the file has each row. Hugging Face's row j*d/2 + i of a head is row 2i + j there.
  static std::vector<std::int64_t> half_rotary_order(const GgufFile& file, const GgufTensor& tensor,
                                                     std::int64_t heads) {
    const std::int64_t rows = tensor.shape.rank() == 0 ? 0 : tensor.shape[0];
    if (rows % heads != 0 || rows / heads % 2 != 0)
      fail(file, tensor,
           fmt::format("of shape {} does not have rows for {} heads", tensor.shape.to_string(), heads));
    const std::int64_t half = rows / heads / 2;
    std::vector<std::int64_t> order;
    order.reserve(static_cast<std::size_t>(rows));
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t j = 0; j < 2; ++j)
        for (std::int64_t i = 0; i < half; ++i) order.push_back(head * 2 * half + 2 * i + j);
    return order;
  }

  /// Experts that lie in one tensor and are modules of their own at Hugging Face.
  bool add_experts(const GgufFile& file, const GgufTensor& tensor) {
    if (family_.architecture != "qwen3moe" || tensor.shape.rank() != 3) return false;
    for (const auto& [part, module] :
         {std::pair{".ffn_gate_exps.weight", "gate_proj"}, std::pair{".ffn_up_exps.weight", "up_proj"},
          std::pair{".ffn_down_exps.weight", "down_proj"}}) {
      if (!tensor.name.ends_with(part) || !tensor.name.starts_with("blk.")) continue;
      if (tensor.shape[0] > kMostExperts) fail(file, tensor, "has too many experts");
      const std::string layer = tensor.name.substr(4, tensor.name.size() - 4 - std::string_view(part).size());
      const std::size_t size = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape[0]);
      for (std::int64_t e = 0; e < tensor.shape[0]; ++e) {
        const ByteParts bytes(tensor.bytes.subspan(static_cast<std::size_t>(e) * size, size));
        weights_.emplace_back(fmt::format("model.layers.{}.mlp.experts.{}.{}.weight", layer, e, module),
                              make(file, tensor, Shape{tensor.shape[1], tensor.shape[2]}, bytes));
      }
      return true;
    }
    return false;
  }

  const GgufTensor* find(const std::string& name) const {
    for (const GgufFile& file : files_) {
      const auto found = std::ranges::find(file.tensors(), name, &GgufTensor::name);
      if (found != file.tensors().end()) return &*found;
    }
    return nullptr;
  }

  /// Experts of gpt-oss, which lie in one parameter at Hugging Face too, (experts, inputs, outputs): outputs
  /// of gate and up take turns there.
  bool add_stacked(const GgufFile& file, const GgufTensor& tensor) {
    if (family_.architecture != "gpt-oss") return false;
    const std::size_t at = tensor.name.find(".ffn_");
    if (!tensor.name.starts_with("blk.") || at == tensor.name.npos) return false;
    const std::string_view part = std::string_view(tensor.name).substr(at + 1);
    const bool bias = part.ends_with(".bias");
    const std::string experts = fmt::format("model.layers.{}.mlp.experts.", tensor.name.substr(4, at - 4));
    if (part.starts_with("ffn_up_exps")) return true;  // with its gate
    if (tensor.shape.rank() != (bias ? 2 : 3)) fail(file, tensor, "does not have the shape of experts");
    if (part.starts_with("ffn_down_exps")) {
      add_stack(file, tensor, experts + (bias ? "down_proj_bias" : "down_proj"), tensor.shape,
                ByteParts(tensor.bytes));
      return true;
    }
    if (!part.starts_with("ffn_gate_exps")) return false;
    std::string other = tensor.name;
    const GgufTensor* up = find(other.replace(at, std::string_view(".ffn_gate").size(), ".ffn_up"));
    if (up == nullptr || up->shape != tensor.shape || up->type != tensor.type)
      fail(file, tensor, "has no ffn_up_exps of its shape and type beside it");
    Shape shape = tensor.shape;
    shape[1] *= 2;
    const auto rows = static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1]);
    const std::size_t row = tensor.bytes.size() / rows;
    ByteParts bytes;
    for (std::size_t i = 0; i < rows; ++i) {
      bytes.add(tensor.bytes.subspan(i * row, row));
      bytes.add(up->bytes.subspan(i * row, row));
    }
    add_stack(file, tensor, experts + (bias ? "gate_up_proj_bias" : "gate_up_proj"), shape, std::move(bytes));
    return true;
  }

  void add_stack(const GgufFile& file, const GgufTensor& tensor, const std::string& name, const Shape& shape,
                 ByteParts bytes) {
    StoredWeightPtr weight = make(file, tensor, shape, std::move(bytes));
    if (shape.rank() == 3)
      weight = std::make_unique<ChangedWeight>(std::move(weight), ValueChange{.transposed = true});
    weights_.emplace_back(name, std::move(weight));
  }

  std::span<const GgufFile> files_;
  const GgufFamily& family_;
  std::vector<std::pair<std::string, StoredWeightPtr>> weights_;
};

}  // namespace

std::vector<std::pair<std::string, StoredWeightPtr>> gguf_weights(std::span<const GgufFile> files,
                                                                  const GgufFamily& family) {
  return Reader(files, family).read();
}

}  // namespace caldera::detail
