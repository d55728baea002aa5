// Writes models in quantised forms that Caldera reads and does not write, for tests: bitsandbytes NF4, and
// GGUF's block types.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <list>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/tensor/quantized_format.h"
#include "lm/base/atomic_file.h"
#include "lm/formats/convert/convert.h"
#include "lm/formats/gguf/gguf_file.h"
#include "lm/formats/gguf/gguf_writer.h"
#include "lm/formats/model_files.h"
#include "lm/formats/safetensors/safetensors.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {

/// The values of NF4's codes (bitsandbytes, functional.py, create_normal_map; QLoRA, appendix E).
inline constexpr std::array<float, 16> kNf4Values{
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F,
};

/// The bytes of a matrix in NF4: its codes, two a byte, the first in the high nibble, and the absolute
/// maximum of each block of the flattened matrix.
struct Nf4Matrix {
  std::vector<std::uint8_t> codes;
  std::vector<float> maxima;
};

inline Nf4Matrix encode_nf4(std::span<const float> values, std::size_t block) {
  Nf4Matrix result;
  result.codes.assign((values.size() + 1) / 2, 0);
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const auto own = values.subspan(begin, std::min(block, values.size() - begin));
    float largest = 0;
    for (const float value : own) largest = std::max(largest, std::abs(value));
    result.maxima.push_back(largest);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const float scaled = largest > 0 ? own[i] / largest : 0;
      const auto* const nearest = std::ranges::min_element(
          kNf4Values, {}, [scaled](float value) { return std::abs(value - scaled); });
      const auto code = static_cast<unsigned>(nearest - kNf4Values.begin());
      result.codes[(begin + i) / 2] |= static_cast<std::uint8_t>((begin + i) % 2 == 0 ? code << 4 : code);
    }
  }
  return result;
}

/// Writes the model of the folder `from` as bitsandbytes saves it with load_in_4bit: projections in NF4, the
/// rest as f32. The tokenizer, where there is one, goes with it.
inline void write_nf4_folder(const std::filesystem::path& from, const std::filesystem::path& to,
                             std::size_t block = 64) {
  std::filesystem::create_directories(to);
  const auto files = ModelFiles::open(from);
  std::list<std::vector<std::byte>> kept;
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape, const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    tensors.push_back({name, dtype, shape, kept.emplace_back(bytes.begin(), bytes.end())});
  };
  for (const std::string& name : files.names()) {
    const StoredWeight& weight = files.weight(name);
    const std::vector<float> values = weight.values();
    if (!name.ends_with("_proj.weight")) {
      add(name, DType::f32, weight.shape(), values);
      continue;
    }
    const Nf4Matrix matrix = encode_nf4(values, block);
    const std::string state = nlohmann::json{{"quant_type", "nf4"},
                                             {"blocksize", block},
                                             {"dtype", "float32"},
                                             {"shape", {weight.shape()[0], weight.shape()[1]}}}
                                  .dump();
    add(name, DType::u8, {std::ssize(matrix.codes), 1}, matrix.codes);
    add(name + ".absmax", DType::f32, {std::ssize(matrix.maxima)}, matrix.maxima);
    add(name + ".quant_map", DType::f32, {16}, kNf4Values);
    add(name + ".quant_state.bitsandbytes__nf4", DType::u8, {std::ssize(state)}, state);
  }
  write_safetensors(to / "model.safetensors", tensors);
  auto config = nlohmann::json::parse(std::ifstream(from / "config.json"));
  config["quantization_config"] = {
      {"quant_method", "bitsandbytes"}, {"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}};
  std::ofstream(to / "config.json") << config.dump();
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    if (std::filesystem::exists(from / name)) std::filesystem::copy(from / name, to / name);
}

/// The format of blocks of this name.
inline QuantizedFormat block_format(std::string_view of) {
  const auto* const found = std::ranges::find(kQuantizedFacts, of, &QuantizedFacts::name);
  if (found == kQuantizedFacts.end() || found->block == 0) throw ValueError("no format " + std::string(of));
  return static_cast<QuantizedFormat>(found - kQuantizedFacts.begin());
}

/// Random blocks of `format`, whose weights are below 0.3: any bits are codes, but scales that are large,
/// infinite or no numbers would drown the rest of a model.
inline std::vector<std::byte> random_blocks(QuantizedFormat format, std::int64_t weights,
                                            std::mt19937& random) {
  const QuantizedFacts& f = facts(format);
  const auto count = static_cast<std::size_t>(weights / f.block);
  const auto block_bytes = static_cast<std::size_t>(f.block_bytes);
  std::vector<std::byte> bytes(count * block_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const block = bytes.data() + i * block_bytes;
    if (format == QuantizedFormat::mxfp4) block[0] = static_cast<std::byte>(127 - 7 + random() % 3);
    for (const std::int16_t at : {f.scale, f.second_scale}) {
      if (at < 0) continue;
      // An f16 of either sign and 2^-n (1 to 2), n such that the largest weight is below 0.3.
      const unsigned exponent = 15 - 3 - std::bit_width(static_cast<unsigned>(f.largest) - 1U);
      const auto half = static_cast<unsigned>(random() % 2 << 15U | exponent << 10U | random() % 1024);
      block[at] = static_cast<std::byte>(half);
      block[at + 1] = static_cast<std::byte>(half >> 8U);
    }
  }
  return bytes;
}

/// Writes a GGUF file of the model at `from` whose layers' matrices are random blocks of `format`; the rest
/// has the model's values.
inline void write_random_gguf(const std::filesystem::path& from, const std::filesystem::path& to,
                              QuantizedFormat format) {
  const TempFolder folder;
  convert_model(from, folder / "floats.gguf", {.to = ModelFormat::gguf, .type = "f32"});
  const auto floats = detail::GgufFile::open(folder / "floats.gguf");
  detail::GgufWriter writer;
  for (const auto& [key, value] : floats.metadata()) writer.add(key, value);
  std::mt19937 random(7);
  for (const detail::GgufTensor& tensor : floats.tensors()) {
    const bool is_quantized = tensor.name.starts_with("blk.") && tensor.shape.rank() == 2;
    const auto type = is_quantized ? static_cast<std::uint32_t>(facts(format).ggml_type) : tensor.type->id;
    auto bytes = is_quantized ? random_blocks(format, tensor.shape.numel(), random)
                              : std::vector<std::byte>(tensor.bytes.begin(), tensor.bytes.end());
    writer.add_tensor(tensor.name, type, tensor.shape, [bytes = std::move(bytes)] { return bytes; });
  }
  StagedFiles files;
  writer.write(files, to);
  files.commit();
}

}  // namespace caldera::testing
