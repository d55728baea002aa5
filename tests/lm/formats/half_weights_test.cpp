// Matrices that stay f16 or bf16 in memory, as files have them: every family says with them what it says with
// the same numbers as f32.
#include <gtest/gtest.h>

#include "lm/formats/convert/convert.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/lm/formats/random_folder.h"

namespace caldera::testing {
namespace {

namespace fs = std::filesystem;

/// What four layers of random weights make of f32's roundings where sums are made in another order: 3e-6 by
/// one kind of product beside another, 6e-6 without OpenBLAS. A number that bf16 does not hold, rounded to
/// it, is off by up to 2e-3.
constexpr double kRoundingOfSums = 1e-5;

std::int64_t bytes_of_matrices(Module& model) {
  class Sum final : public ParameterVisitor {
   public:
    void matrix(const std::string&, Weight& weight) override {
      if (!weight.is_quantized() && !weight.tensor.defined()) return;
      bytes += weight.is_quantized()
                   ? weight.quantized.bytes()
                   : weight.tensor.numel() * static_cast<std::int64_t>(size_of(weight.tensor.dtype()));
    }
    std::int64_t bytes = 0;
  };
  Sum sum;
  model.visit({}, sum);
  return sum.bytes;
}

class HalfWeightsOf : public ::testing::TestWithParam<std::string> {};

TEST_P(HalfWeightsOf, SayTheSameInHalfTheMemory) {
  const TempFolder folder;
  make_random_folder(folder / "model", smallest_config(GetParam()));
  for (const auto& [format, type] :
       {std::pair{ModelFormat::safetensors, "bf16"}, std::pair{ModelFormat::safetensors, "f16"},
        std::pair{ModelFormat::gguf, "f16"}, std::pair{ModelFormat::gguf, "bf16"}}) {
    SCOPED_TRACE(type);
    const fs::path path = folder / (std::string(type) + (format == ModelFormat::gguf ? ".gguf" : ""));
    try {
      convert_model(folder / "model", path, {.to = format, .type = type});
    } catch (const FileError&) {
      EXPECT_EQ(format, ModelFormat::gguf);  // some families have none
      continue;
    }
    const bool encoder = is_encoder(path);
    const auto as_floats = load_text_model(path, Device::cpu());
    const auto as_stored = load_text_model(path, Device::cpu(), DType::f32, HalfWeights::as_stored);
    EXPECT_FALSE(as_floats->has_quantized_weights());
    EXPECT_TRUE(as_stored->has_quantized_weights());
    if (GetParam() == "gpt_oss")  // its experts are stored as no product takes them
      EXPECT_LT(bytes_of_matrices(*as_stored), bytes_of_matrices(*as_floats));
    else
      EXPECT_EQ(2 * bytes_of_matrices(*as_stored), bytes_of_matrices(*as_floats));
    EXPECT_LE(relative_error(said_by(*as_stored, encoder), said_by(*as_floats, encoder)), kRoundingOfSums);
    // And where they stay in the file.
    const auto mapped = load_text_model(path, Device::cpu(), DType::f32, HalfWeights::mapped);
    EXPECT_EQ(bytes_of_matrices(*mapped), bytes_of_matrices(*as_stored));
    EXPECT_EQ(said_by(*mapped, encoder), said_by(*as_stored, encoder));
    // In 16 bits nothing is gained: they are the model's own.
    EXPECT_FALSE(
        load_text_model(path, Device::cpu(), DType::bf16, HalfWeights::as_stored)->has_quantized_weights());
  }
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const FamilyFacts& family : model_families()) names.push_back(family.model_type);
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(, HalfWeightsOf, ::testing::ValuesIn(family_names()), [](const auto& family) {
  std::string name = family.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace caldera::testing
