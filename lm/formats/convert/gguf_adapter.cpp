// LoRA adapters as files of GGUF.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/formats/convert/adapter_matrices.h"
#include "lm/formats/convert/weight_bytes.h"
#include "lm/formats/gguf/gguf_family.h"
#include "lm/formats/gguf/gguf_file.h"
#include "lm/formats/gguf/gguf_writer.h"

namespace caldera::detail {
namespace {

const GgufFamily& family_of(const ModelConfig& config) {
  const GgufFamily* family = gguf_family_of_model_type(config.model_type);
  if (family == nullptr)
    throw FileError(fmt::format("adapters of {} have no form in GGUF (those that have: {})",
                                config.model_type, known_gguf_architectures()));
  return *family;
}

/// The heads whose rows lie by neighbours in the file; 0: rows lie as they are.
std::int64_t interleaved_heads(const GgufFamily& family, const ModelConfig& config, const std::string& path) {
  if (!family.interleaved_rotary) return 0;
  if (path.ends_with(".q_proj")) return config.num_attention_heads;
  if (path.ends_with(".k_proj")) return config.num_key_value_heads;
  return 0;
}

enum class Direction : std::uint8_t { to_file, from_file };

/// Rows (out, rank) in the order of the file, or back: row j*d/2 + i of a head is row 2i + j there.
std::vector<float> reordered(const std::vector<float>& rows, std::int64_t out, std::int64_t heads,
                             Direction direction, const std::string& path) {
  if (heads == 0) return rows;
  if (out % (2 * heads) != 0)
    throw FileError(fmt::format("{}: {} rows, which are not those of {} heads", path, out, heads));
  const std::int64_t half = out / heads / 2;
  const auto width = static_cast<std::ptrdiff_t>(rows.size() / static_cast<std::size_t>(out));
  std::vector<float> result(rows.size());
  for (std::int64_t row = 0; row < out; ++row) {
    const std::int64_t within = row % (2 * half);
    const std::int64_t in_file = row - within + within % half * 2 + within / half;
    const std::int64_t from = direction == Direction::to_file ? row : in_file;
    const std::int64_t to = direction == Direction::to_file ? in_file : row;
    std::copy_n(rows.begin() + from * width, width, result.begin() + to * width);
  }
  return result;
}

std::vector<float> floats_of(const GgufTensor& tensor, const std::string& where) {
  if (tensor.shape.rank() != 2)
    throw FileError(fmt::format("{}: {} is no matrix", where, printable(tensor.name)));
  const auto count = static_cast<std::size_t>(tensor.shape.numel());
  std::vector<float> values(count);
  const auto read = [&]<class Bits>(Bits, auto widen) {
    for (std::size_t i = 0; i < count; ++i) {
      Bits bits;
      std::memcpy(&bits, tensor.bytes.data() + i * sizeof(Bits), sizeof(Bits));
      values[i] = widen(bits);
    }
  };
  if (tensor.type->id == ggml::kF32)
    std::memcpy(values.data(), tensor.bytes.data(), count * sizeof(float));
  else if (tensor.type->id == ggml::kF16)
    read(std::uint16_t{}, [](std::uint16_t bits) { return to_float(Half{bits}); });
  else if (tensor.type->id == ggml::kBF16)
    read(std::uint16_t{}, [](std::uint16_t bits) { return to_float(BFloat16{bits}); });
  else
    throw FileError(fmt::format("{}: {} is {}; adapters hold f32, f16 or bf16", where, printable(tensor.name),
                                tensor.type->name));
  return values;
}

}  // namespace

void write_gguf_adapter(StagedFiles& files, const std::filesystem::path& path, const ModelConfig& config,
                        const std::vector<AdapterMatrix>& matrices) {
  const GgufFamily& family = family_of(config);
  // Such files have one alpha: what a module's own scale is besides goes into its B.
  const double alpha = matrices.front().scale * static_cast<double>(matrices.front().rank);
  GgufWriter writer;
  writer.add("general.architecture", std::string(family.architecture));
  writer.add("general.type", std::string("adapter"));
  writer.add("adapter.type", std::string("lora"));
  writer.add("adapter.lora.alpha", static_cast<float>(alpha));
  for (const AdapterMatrix& m : matrices) {
    if (!m.magnitude.empty())
      throw FileError(fmt::format(
          "{}: GGUF files have no DoRA; merge the adapter into a model instead (caldera fuse --to gguf)",
          m.path));
    const auto name = to_gguf(family, m.path + ".weight");
    if (!name)
      throw FileError(
          fmt::format("{}: the module has no name in GGUF files of {}", m.path, family.architecture));
    const double factor = m.scale * static_cast<double>(m.rank) / alpha;
    std::vector<float> b =
        reordered(m.b, m.out, interleaved_heads(family, config, m.path), Direction::to_file, m.path);
    if (factor != 1)
      for (float& value : b) value = static_cast<float>(value * factor);
    writer.add_tensor(*name + ".lora_a", ggml::kF32, Shape{m.rank, m.in},
                      [&m] { return float_bytes(m.a, DType::f32, m.path); });
    writer.add_tensor(*name + ".lora_b", ggml::kF32, Shape{m.out, m.rank},
                      [b = std::move(b), &m] { return float_bytes(b, DType::f32, m.path); });
  }
  writer.write(files, path);
}

std::vector<AdapterMatrix> read_gguf_adapter(const std::filesystem::path& path, const ModelConfig& config) {
  const GgufFile file = GgufFile::open(path);
  const std::string where = path.string();
  if (file.string("general.type") != "adapter" || file.string("adapter.type") != "lora")
    throw FileError(fmt::format("{}: the file is no LoRA adapter (general.type, adapter.type)", where));
  const GgufFamily& family = family_of(config);
  if (file.string("general.architecture") != family.architecture)
    throw FileError(fmt::format("{}: an adapter of {}, and the model is {}", where,
                                printable(file.string("general.architecture").value_or("nothing")),
                                family.architecture));
  const auto alpha = file.number("adapter.lora.alpha");
  if (!alpha || !std::isfinite(*alpha) || *alpha <= 0) file.fail("adapter.lora.alpha", "is not positive");
  std::map<std::string, AdapterMatrix> found;
  for (const GgufTensor& tensor : file.tensors()) {
    const bool is_a = tensor.name.ends_with(".lora_a"), is_b = tensor.name.ends_with(".lora_b");
    const std::size_t suffix = std::string_view(".lora_a").size();
    const auto name = is_a || is_b
                          ? to_hugging_face(family, tensor.name.substr(0, tensor.name.size() - suffix))
                          : std::nullopt;
    if (!name || !name->ends_with(".weight"))
      throw FileError(fmt::format("{}: {} is no factor of a LoRA adapter of {}", where,
                                  printable(tensor.name), family.architecture));
    const std::string module = name->substr(0, name->size() - std::string_view(".weight").size());
    AdapterMatrix& m = found.try_emplace(module, AdapterMatrix{.path = module}).first->second;
    std::vector<float> values = floats_of(tensor, where);
    if (is_a) {
      m.in = tensor.shape[1];
      m.a = std::move(values);
      if (m.rank != 0 && m.rank != tensor.shape[0])
        throw FileError(fmt::format("{}: ranks of {} differ", where, module));
      m.rank = tensor.shape[0];
    } else {
      m.out = tensor.shape[0];
      if (m.rank != 0 && m.rank != tensor.shape[1])
        throw FileError(fmt::format("{}: ranks of {} differ", where, module));
      m.rank = tensor.shape[1];
      m.b = reordered(values, m.out, interleaved_heads(family, config, module), Direction::from_file, module);
    }
  }
  std::vector<AdapterMatrix> matrices;
  for (auto& [module, m] : found) {
    if (m.a.empty() || m.b.empty())
      throw FileError(fmt::format("{}: of {} one of lora_a and lora_b is missing", where, module));
    m.scale = *alpha / static_cast<double>(m.rank);
    matrices.push_back(std::move(m));
  }
  if (matrices.empty()) throw FileError(fmt::format("{}: the adapter is empty", where));
  return matrices;
}

}  // namespace caldera::detail
