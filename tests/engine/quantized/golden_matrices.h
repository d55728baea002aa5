// Quantised matrices of tests/golden/quantized: random bits of every format, and what they stand for.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ops/quantized/quantized_products.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {

struct GoldenMatrix {
  std::string name;
  QuantizedLayout layout;
  Shape shape;
  struct Part {
    DType type;
    Shape shape;
    std::vector<std::uint8_t> bytes;
  };
  std::vector<Part> parts;
  std::vector<float> weights;
};

inline std::vector<std::uint8_t> from_hex(const std::string& text) {
  std::vector<std::uint8_t> bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

inline Shape shape_from(const nlohmann::json& extents) {
  Shape shape;
  for (const auto& extent : extents) shape.push_back(extent.get<std::int64_t>());
  return shape;
}

inline std::vector<GoldenMatrix> read_golden_matrices(const char* folder) {
  std::map<std::string, GoldenMatrix> by_name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const auto data = nlohmann::json::parse(std::ifstream(entry.path()));
    GoldenMatrix m;
    m.name = entry.path().stem().string();
    for (int f = 0; f < kQuantizedFormatCount; ++f) {
      const auto format = static_cast<QuantizedFormat>(f);
      if (data.at("format") == name(format)) m.layout.format = format;
    }
    m.layout.group = data.at("group");
    m.layout.group_rows = data.at("group_rows");
    m.shape = shape_from(data.at("shape"));
    for (const auto& part : data.at("parts")) {
      DType type{};
      for (const DType t : kAllDTypes)
        if (part.at("type") == name(t)) type = t;
      m.parts.push_back({type, shape_from(part.at("shape")), from_hex(part.at("bytes"))});
    }
    const std::vector<std::uint8_t> weights = from_hex(data.at("weights"));
    m.weights.resize(weights.size() / sizeof(float));
    std::memcpy(m.weights.data(), weights.data(), weights.size());
    by_name[m.name] = m;
  }
  std::vector<GoldenMatrix> list;
  for (auto& [_, m] : by_name) list.push_back(std::move(m));
  return list;
}

inline const std::vector<GoldenMatrix>& golden_matrices() {
  static const std::vector<GoldenMatrix> all = read_golden_matrices("tests/golden/quantized");
  return all;
}

/// Those whose scales are subnormal, the largest, infinite, or no numbers.
inline const std::vector<GoldenMatrix>& golden_edges() {
  static const std::vector<GoldenMatrix> all = read_golden_matrices("tests/golden/quantized/edges");
  return all;
}

/// The matrix on a device; codes as signed words where it has no others.
inline QuantizedTensor upload(const GoldenMatrix& m, Device device) {
  std::vector<LazyTensor> parts;
  for (const GoldenMatrix::Part& part : m.parts) {
    const bool lacks_words = part.type == DType::u32 && !backend(device).supports(DType::u32);
    parts.push_back(LazyTensor::from_bytes(part.bytes.data(), part.bytes.size(),
                                           lacks_words ? DType::i32 : part.type, part.shape, device));
  }
  return quantized_tensor(m.layout, m.shape, std::move(parts));
}

}  // namespace caldera::testing
