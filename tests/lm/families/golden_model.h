// A small model of some family with an adapter, and what they compute: the folders that the scripts in
// tests/golden/models make (golden_model.py says what they hold).
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lm/formats/safetensors/safetensors.h"
#include "lm/models/registry.h"
#include "tests/lm/nn/reference.h"

namespace caldera::testing {

class GoldenModel {
 public:
  /// Of the larger of 1 and the value's magnitude: what is computed in f32 is compared with float64.
  static constexpr double kTolerance = 1e-4;
  /// The shape of the ids and targets.
  static constexpr std::int64_t kBatch = 2;
  static constexpr std::int64_t kPositions = 9;

  /// Opens tests/golden/models/`name`.
  GoldenModel(const std::string& name, Device device)
      : dir_(std::filesystem::path("tests/golden/models") / name),
        model_(load_text_model(dir_, device)),
        golden_(SafetensorsFile::open(dir_ / "golden.safetensors")) {}

  CausalLM& model() { return *model_; }
  std::filesystem::path adapter() const { return dir_ / "adapter"; }
  Doubles values(const std::string& name) const {
    const std::vector<float> floats = golden_.read_f32(name);
    return {floats.begin(), floats.end()};
  }
  /// "ids" or "targets", (kBatch, kPositions).
  std::vector<std::int32_t> tokens(const std::string& name) const {
    const auto bytes = golden_.bytes(name);
    std::vector<std::int32_t> ids(bytes.size() / sizeof(std::int32_t));
    std::memcpy(ids.data(), bytes.data(), bytes.size());
    return ids;
  }

 private:
  std::filesystem::path dir_;
  std::unique_ptr<CausalLM> model_;
  SafetensorsFile golden_;
};

}  // namespace caldera::testing
