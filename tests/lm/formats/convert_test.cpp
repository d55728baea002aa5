// Models written in other formats, read back.
#include "lm/formats/convert/convert.h"

#include <fstream>

#include "lm/base/atomic_file.h"
#include "lm/formats/gguf/gguf_file.h"
#include "lm/formats/model_files.h"
#include "lm/models/registry.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/test_data.h"

namespace caldera::testing {
namespace {

double worst_difference(const ModelFiles& a, const ModelFiles& b, const std::string& name) {
  const std::vector<float> x = a.weight(name).values();
  const std::vector<float> y = b.weight(name).values();
  EXPECT_EQ(x.size(), y.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(x[i]) - y[i]));
  return worst;
}

/// The mean of squared differences of two files' tensor, by its GGUF name.
double mean_square(const ModelFiles& a, const ModelFiles& b, const std::string& name) {
  const std::vector<float> x = a.weight(name).values();
  const std::vector<float> y = b.weight(name).values();
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (static_cast<double>(x[i]) - y[i]) * (x[i] - y[i]);
  return sum / static_cast<double>(x.size());
}

/// Every golden family that GGUF and this version know survives the way there and back.
TEST(Convert, FoldersToOtherFormatsAndBack) {
  const TempFolder folder;
  for (const char* family : {"qwen2-untied", "qwen2-tied", "llama-llama3", "llama-linear", "mistral", "qwen3",
                             "phi3-long", "phi3-short", "olmo2", "granite"}) {
    SCOPED_TRACE(family);
    const auto source = std::filesystem::path("tests/golden/models") / family;
    convert_model(source, folder / "m.gguf", {.to = ModelFormat::gguf, .type = "f32"});
    const Converted back = convert_model(folder / "m.gguf", folder / "back", {});
    EXPECT_EQ(back.out, folder / "back");
    convert_model(source, folder / "half", {.to = ModelFormat::safetensors, .type = "bf16"});
    const auto before = ModelFiles::open(source);
    const auto gguf = ModelFiles::open(folder / "m.gguf");
    const auto after = ModelFiles::open(folder / "back");
    const auto half = ModelFiles::open(folder / "half");
    EXPECT_EQ(back.tensors, before.names().size());
    for (const std::string& name : before.names()) {
      EXPECT_EQ(worst_difference(before, gguf, name), 0) << name;
      EXPECT_EQ(worst_difference(before, after, name), 0) << name;
      EXPECT_LT(worst_difference(before, half, name), 0.02) << name;
    }
    const auto model = load_causal_lm(source, Device::cpu());
    const auto again = load_causal_lm(folder / "m.gguf", Device::cpu());
    const std::vector<std::int32_t> ids{1, 5, 2, 7, 3};
    // Factors of a configuration are f32 in a GGUF file.
    expect_close((*again)(again->make_ids(ids)), to_doubles((*model)(model->make_ids(ids))), 1e-5, family);
  }
}

/// What llama.cpp's quantiser made of the same weights: the same blocks, and for Q4_K and Q6_K no larger an
/// error.
TEST(Convert, BlocksOfLlamaCppsQuantiser) {
  CALDERA_REQUIRE_DATA(data, "gguf");
  const TempFolder folder;
  for (const auto& [type, theirs] : {std::pair{"q8_0", "Q8_0"}, std::pair{"q4_0", "Q4_0"}}) {
    SCOPED_TRACE(type);
    convert_model(data / "hf", folder / "m.gguf", {.to = ModelFormat::gguf, .type = type});
    const auto ours = detail::GgufFile::open(folder / "m.gguf");
    const auto golden = detail::GgufFile::open(data / (std::string("tiny-") + theirs + ".gguf"));
    int compared = 0;
    for (const auto& tensor : golden.tensors()) {
      for (const auto& mine : ours.tensors()) {
        if (mine.name != tensor.name || mine.type != tensor.type) continue;
        EXPECT_TRUE(std::ranges::equal(mine.bytes, tensor.bytes)) << tensor.name;
        ++compared;
      }
    }
    EXPECT_GE(compared, 20) << "all but the output matrix, which llama.cpp gives six bits";
  }
  const auto original = ModelFiles::open(data / "hf");
  for (const auto& [type, file] :
       {std::pair{"q4_k", "tiny-Q4_K_M.gguf"}, std::pair{"q6_k", "tiny-Q6_K.gguf"}}) {
    SCOPED_TRACE(type);
    convert_model(data / "hf", folder / "k.gguf", {.to = ModelFormat::gguf, .type = type});
    const auto ours = ModelFiles::open(folder / "k.gguf");
    const auto theirs = ModelFiles::open(data / file);
    int compared = 0;
    for (const std::string& name : original.names()) {
      if (ours.weight(name).type() != type || theirs.weight(name).type() != type) continue;
      EXPECT_LE(mean_square(original, ours, name), 1.01 * mean_square(original, theirs, name)) << name;
      ++compared;
    }
    EXPECT_GE(compared, 10);
  }
}

TEST(Convert, MlxFolders) {
  CALDERA_REQUIRE_DATA(data, "gguf");
  const TempFolder folder;
  const auto original = ModelFiles::open(data / "hf");
  for (const auto& [type, steps] : {std::pair{"affine4", 15.0}, std::pair{"affine8", 255.0}}) {
    SCOPED_TRACE(type);
    const Converted made = convert_model(data / "hf", folder / type, {.to = ModelFormat::mlx, .type = type});
    EXPECT_EQ(made.tensors, original.names().size() + 2 * 16);
    const auto files = ModelFiles::open(folder / type);
    for (const std::string& name : original.names()) {
      const std::vector<float> x = original.weight(name).values();
      const std::vector<float> y = files.weight(name).values();
      const bool quantized = original.weight(name).shape().rank() == 2;
      EXPECT_EQ(files.weight(name).read_quantized(Device::cpu()).has_value(), quantized) << name;
      for (std::size_t group = 0; quantized && group < x.size(); group += 64) {
        const auto [low, high] = std::ranges::minmax(std::span(x).subspan(group, 64));
        // The end of the range farther from zero is a code's; the other one may be half a step beyond the
        // last.
        const double step = (high - low) / steps * 1.1 + 1e-6;
        for (std::size_t i = group; i < group + 64; ++i) ASSERT_NEAR(x[i], y[i], step) << name << " " << i;
      }
    }
    EXPECT_NO_THROW((void)load_causal_lm(folder / type, Device::cpu()));
  }
}

/// Matrices whose rows are no whole blocks stay floats, which is counted, and config.json says no more.
TEST(Convert, MatricesThatStayFloatsAreCounted) {
  const TempFolder folder;
  const auto source = std::filesystem::path("tests/golden/models/qwen2-tied");
  const Converted mlx = convert_model(source, folder / "mlx", {.to = ModelFormat::mlx, .type = "affine4"});
  EXPECT_GT(mlx.matrices, 0U);
  EXPECT_EQ(mlx.matrices_as_floats, mlx.matrices);
  EXPECT_EQ(read_text_file(folder / "mlx" / "config.json").find("quantization"), std::string::npos);
  EXPECT_NO_THROW((void)load_causal_lm(folder / "mlx", Device::cpu()));
  const Converted gguf = convert_model(source, folder / "m.gguf", {.to = ModelFormat::gguf, .type = "q4_0"});
  const auto files = ModelFiles::open(folder / "m.gguf");
  std::size_t floats = 0;
  for (const std::string& name : files.names())
    if (files.weight(name).shape().rank() == 2 && !files.weight(name).read_quantized(Device::cpu())) ++floats;
  EXPECT_EQ(gguf.matrices_as_floats, floats);
  EXPECT_GT(floats, 0U);
  EXPECT_EQ(convert_model(source, folder / "f.gguf", {.to = ModelFormat::gguf}).matrices, 0U);
}

TEST(Convert, RefusesWhatDoesNotFit) {
  const TempFolder folder;
  const auto source = std::filesystem::path("tests/golden/models/qwen2-tied");
  EXPECT_CONTAINS(error_of<ValueError>(
                      [&] { convert_model(source, folder / "x", {.to = ModelFormat::mlx, .type = "q8_0"}); }),
                  "affine8");
  EXPECT_CONTAINS(error_of<FileError>([&] { convert_model(folder / "absent", folder / "x", {}); }), "absent");
  std::filesystem::create_directory(folder / "bert");
  folder.put("bert/config.json", R"({"model_type":"t5"})");
  std::filesystem::copy(source / "model.safetensors", folder / "bert" / "model.safetensors");
  EXPECT_CONTAINS(error_of<FileError>(
                      [&] { convert_model(folder / "bert", folder / "x.gguf", {.to = ModelFormat::gguf}); }),
                  "'t5'");
  EXPECT_FALSE(std::filesystem::exists(folder / "x.gguf"));
}

}  // namespace
}  // namespace caldera::testing
