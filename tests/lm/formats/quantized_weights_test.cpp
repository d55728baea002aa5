// The quantised forms of Hugging Face folders, against values that tests/golden/weights/generate.py worked
// out.
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "lm/formats/model_files.h"
#include "lm/formats/safetensors/safetensors.h"
#include "tests/lm/base/io_test_support.h"

namespace caldera {
namespace {

using testing::error_of;
using testing::TempFolder;

const std::filesystem::path kGolden = "tests/golden/weights";

class QuantizedForms : public ::testing::TestWithParam<const char*> {};

TEST_P(QuantizedForms, HaveTheirValues) {
  const auto files = ModelFiles::open(kGolden / GetParam());
  const auto golden = SafetensorsFile::open(kGolden / GetParam() / "golden.safetensors");
  EXPECT_EQ(files.names().size(), golden.names().size()) << "no tensor is left over";
  for (const std::string& name : golden.names()) {
    SCOPED_TRACE(name);
    const StoredWeight& weight = files.weight(name);
    ASSERT_EQ(weight.shape(), golden.info(name).shape);
    EXPECT_TRUE(weight.is_floating());
    const std::vector<float> expected = golden.read_f32(name);
    const std::vector<float> values = weight.values();
    const std::vector<float> on_device = weight.read(DType::f32, Device::cpu()).to_vector<float>();
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(expected[i]))
          << "element " << i << ": " << values[i] << " is not " << expected[i];
      ASSERT_EQ(values[i], on_device[i]);
    }
  }
}

std::string form_name(const ::testing::TestParamInfo<const char*>& form) {
  std::string name = form.param;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(, QuantizedForms,
                         ::testing::Values("nf4", "nf4-nested", "fp4-ragged", "mlx", "gptq", "gptq-v2",
                                           "gptq-order", "awq", "fp8", "mxfp4"),
                         form_name);

/// What products take stays as small as the file has it.
TEST(QuantizedWeights, StayQuantized) {
  for (const char* form : {"nf4", "nf4-nested", "gptq", "gptq-v2", "awq", "mxfp4"}) {
    const auto files = ModelFiles::open(kGolden / form);
    for (const std::string& name : files.names()) {
      const auto quantized = files.weight(name).read_quantized(Device::cpu());
      if (name.ends_with(".bias")) continue;
      ASSERT_TRUE(quantized.has_value()) << form << ' ' << name;
      EXPECT_LT(quantized->bytes(), quantized->shape.numel() * 2) << form << ' ' << name;
    }
    EXPECT_EQ(files.config().find("quantization_config"), std::string::npos);
  }
  const auto order = ModelFiles::open(kGolden / "gptq-order");
  EXPECT_FALSE(
      order.weight("model.layers.0.self_attn.q_proj.weight").read_quantized(Device::cpu()).has_value());
}

/// A golden folder whose quantization_config is another one.
void copy_with(const std::filesystem::path& to, const char* form, const nlohmann::json& options) {
  std::filesystem::remove_all(to);
  std::filesystem::create_directories(to);
  std::filesystem::copy(kGolden / form / "model.safetensors", to / "model.safetensors");
  std::ofstream(to / "config.json") << nlohmann::json{
      {"model_type", "none"},
      {"quantization_config", options}}.dump();
}

/// GPTQModel's `dynamic`: settings of single modules, by expressions over their names.
TEST(QuantizedWeights, GptqSettingsOfSingleModules) {
  const TempFolder folder;
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  const auto golden = SafetensorsFile::open(kGolden / "gptq" / "golden.safetensors").read_f32(name);
  const auto with = [&](const nlohmann::json& rules, int bits = 8, int group = 64) {
    copy_with(folder / "model", "gptq",
              {{"quant_method", "gptq"}, {"bits", bits}, {"group_size", group}, {"dynamic", rules}});
    return ModelFiles::open(folder / "model").weight(name).values();
  };
  const nlohmann::json settings{{"bits", 4}, {"group_size", 32}, {"sym", false}};
  for (const char* pattern : {"+:model\\.layers\\.0\\.", R"(.*q_proj$)", "+:.*\\.(q|k)_proj", "model"})
    EXPECT_EQ(with({{pattern, settings}}), golden) << pattern;
  EXPECT_EQ(with({{".*down_proj", {{"bits", 8}}}, {"-:.*lm_head", nlohmann::json::object()}}, 4, 32), golden);
  EXPECT_EQ(with({{"q_proj", {{"bits", 8}}}}, 4, 32), golden) << "names are matched from their beginning";
  EXPECT_EQ(with(nullptr, 4, 32), golden);
  EXPECT_EQ(with(nlohmann::json::object(), 4, 32), golden);

  const auto refused = [&](const nlohmann::json& rules) {
    return error_of<FileError>([&] { with(rules, 4, 32); });
  };
  EXPECT_CONTAINS(refused({{"-:.*q_proj", nlohmann::json::object()}}), "q_proj has codes");
  EXPECT_CONTAINS(refused({{"+:.*q_proj", {{"bits", 3}}}}), "bits");
  EXPECT_CONTAINS(refused({{"+:.*q_proj", {{"adapter", {{"name", "eora"}}}}}}), "'adapter'");
  EXPECT_CONTAINS(refused({{".*q_proj", settings}, {"model", {{"bits", 8}}}}), "contradict");
  EXPECT_CONTAINS(refused({{".*(q_proj", settings}}), "dynamic");
  EXPECT_CONTAINS(refused({{".*q_proj", 4}}), "must be an object");
  EXPECT_CONTAINS(refused({"q_proj"}), "'dynamic'");
}

/// What is not known of how a folder is quantised may change what its weights are.
TEST(QuantizedWeights, UnknownOptionsAreRefused) {
  const TempFolder folder;
  const auto open = [&](const char* form, nlohmann::json options, const nlohmann::json& more) {
    options.update(more);
    copy_with(folder / "model", form, options);
    (void)ModelFiles::open(folder / "model");
  };
  const nlohmann::json gptq{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}};
  const nlohmann::json awq{{"quant_method", "awq"}, {"bits", 4}, {"group_size", 32}};
  const nlohmann::json fp8{{"quant_method", "fp8"}, {"weight_block_size", {4, 32}}};
  const nlohmann::json compressed{
      {"quant_method", "compressed-tensors"}, {"format", "float-quantized"}, {"weight_block_size", {4, 32}}};
  const nlohmann::json nf4{{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}};
  const nlohmann::json mlx{{"group_size", 64}, {"bits", 4}};
  for (const auto& [form, options, more] :
       std::vector<std::tuple<const char*, nlohmann::json, nlohmann::json>>{
           {"gptq", gptq, {{"adapter", {{"name", "eora"}}}}},
           {"gptq", gptq, {{"is_marlin_format", true}}},
           {"gptq", gptq, {{"pack_dtype", "int16"}}},
           {"awq", awq, {{"rotation", "hadamard"}}},
           {"fp8", fp8, {{"transform_config", {{"config_groups", 1}}}}},
           {"fp8", compressed, {{"transform_config", {{"config_groups", 1}}}}},
           {"fp8", compressed, {{"sparsity_config", {{"format", "sparse-24-bitmask"}}}}},
           {"nf4", nf4, {{"bnb_4bit_new", 3}}},
           {"mlx", mlx, {{"scale_dtype", "u8"}}}})
    EXPECT_CONTAINS(
        error_of<FileError>([&, form = form, options = options, more = more] { open(form, options, more); }),
        "'" + more.begin().key() + "'");
  open("gptq", gptq,
       {{"adapter", nullptr},
        {"is_marlin_format", false},
        {"damp_percent", 0.01},
        {"meta", {{"quantizer", "x"}}}});
  open("fp8", compressed, {{"sparsity_config", {{"format", "dense"}}}, {"kv_cache_scheme", nullptr}});
  open("awq", awq, {{"modules_to_not_convert", {"lm_head"}}, {"version", "gemm"}});
}

TEST(QuantizedWeights, RefusesWhatDoesNotFit) {
  const TempFolder folder;
  const std::vector<std::byte> bytes(4096);
  const auto with = [&](const std::string& quantization, const std::vector<TensorToWrite>& tensors) {
    folder.put("config.json", "{" + quantization + "}");
    write_safetensors(folder / "model.safetensors", tensors);
    return error_of<FileError>([&] { (void)ModelFiles::open(folder.path()); });
  };
  const auto of = [&](const char* name, DType dtype, const Shape& shape) {
    return TensorToWrite{name, dtype, shape,
                         std::span(bytes).first(static_cast<std::size_t>(shape.numel()) * size_of(dtype))};
  };
  const std::string gptq = R"("quantization_config":{"quant_method":"gptq","bits":4,"group_size":32})";
  EXPECT_CONTAINS(with(R"("quantization_config":{"quant_method":"hqq"})", {}), "'hqq'");
  EXPECT_CONTAINS(with(R"("quantization_config":[])", {}), "must be an object");
  EXPECT_CONTAINS(with(R"("quantization_config":{"quant_method":"bitsandbytes","load_in_8bit":true})", {}),
                  "load_in_8bit");
  EXPECT_CONTAINS(with(R"("quantization_config":{"quant_method":"gptq","bits":3})", {}), "bits");
  EXPECT_CONTAINS(with(gptq, {of("p.qweight", DType::i32, {4, 8})}), "qzeros");
  EXPECT_CONTAINS(with(gptq, {of("p.qweight", DType::i32, {3, 8})}), "24 inputs");
  EXPECT_CONTAINS(with(gptq, {of("p.qweight", DType::f32, {4, 8})}), "I32 matrix");
  EXPECT_CONTAINS(with(gptq, {of("p.qweight", DType::i32, {4, 0})}), "empty");
  EXPECT_CONTAINS(with(gptq, {of("p.qweight", DType::i32, {4, 8}), of("p.qzeros", DType::i32, {1, 2})}),
                  "p.qzeros");
  EXPECT_CONTAINS(with(R"("quantization":{"group_size":64,"bits":9})", {}), "bits");
  EXPECT_CONTAINS(with(R"("quantization":{"group_size":64,"bits":4,"mode":"nvfp4"})", {}), "nvfp4");
  EXPECT_CONTAINS(with(R"("quantization":{"group_size":64,"bits":4})",
                       {of("p.weight", DType::u32, {2, 4}), of("p.scales", DType::f16, {2, 1})}),
                  "no groups of 64");
  EXPECT_CONTAINS(with(R"("quantization_config":{"quant_method":"mxfp4"})",
                       {of("e_blocks", DType::u8, {1, 2, 3, 16}), of("e_scales", DType::u8, {1, 2, 4})}),
                  "e_scales");
  EXPECT_CONTAINS(with(R"("quantization_config":{"quant_method":"fp8","weight_block_size":[0,1]})", {}),
                  "weight_block_size");
  EXPECT_CONTAINS(with(R"("quantization_config":{"quant_method":"fp8"})",
                       {of("p.weight", DType::f32, {4, 4}), of("p.weight_scale", DType::f32, {1})}),
                  "F8_E4M3");
}

}  // namespace
}  // namespace caldera
