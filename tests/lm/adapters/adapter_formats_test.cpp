// Adapters in the formats of other programs: what they hold, and the way there and back.
#include "lm/adapters/adapter_formats.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "lm/adapters/lora.h"
#include "lm/formats/gguf/gguf_file.h"
#include "lm/formats/safetensors/safetensors.h"
#include "lm/models/llama.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/tiny_llama.h"

namespace caldera::testing {
namespace {

std::unique_ptr<Llama> plain_llama() {
  auto model = std::make_unique<Llama>(tiny_llama({.hidden = 32, .layers = 3, .heads = 4, .kv_heads = 2}),
                                       Device::cpu(), 5);
  model->set_training(false);
  return model;
}

std::vector<float> logits_of_adapted(const std::filesystem::path& adapter) {
  const auto model = plain_llama();
  load_adapter(*model, adapter);
  model->set_training(false);
  const std::vector<std::int32_t> ids{1, 5, 9, 30, 2, 7};
  return model->forward(model->make_ids(ids)).to_vector<float>();
}

class AdapterFormats : public ::testing::Test {
 protected:
  void write(const LoRAOptions& options, const std::vector<std::string>& targets) {
    const auto model = plain_llama();
    apply_lora(*model, options, targets, 1);
    std::uint64_t seed = 80;
    for (const Parameter& p : model->trainable_parameters())
      *p.tensor = *p.tensor + random_normal(p.tensor->shape(), seed++, DType::f32, Device::cpu()) * 0.1;
    model->materialize();
    save_adapter(*model, folder_ / "peft", "some/model");
  }
  void convert(const char* from, AdapterFormat to, const char* out) {
    convert_adapter(*plain_llama(), folder_ / from, to, folder_ / out);
  }
  void expect_equal_logits(const char* other, double tolerance = 0) {
    const std::vector<float> expected = logits_of_adapted(folder_ / "peft");
    const std::vector<float> actual = logits_of_adapted(folder_ / other);
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(actual[i], expected[i], tolerance) << other;
  }

  TempFolder folder_;
};

TEST_F(AdapterFormats, ThereAndBackIsTheSameAdapter) {
  write({.rank = 3, .alpha = 6, .dropout = 0.1}, {"all-linear"});
  convert("peft", AdapterFormat::mlx, "mlx");
  convert("peft", AdapterFormat::gguf, "adapter.gguf");
  expect_equal_logits("mlx");
  expect_equal_logits("adapter.gguf");
  for (const char* from : {"mlx", "adapter.gguf"}) {
    convert(from, AdapterFormat::peft, "again");
    expect_equal_logits("again");
    const SafetensorsFile one = SafetensorsFile::open(folder_ / "peft/adapter_model.safetensors");
    const SafetensorsFile two = SafetensorsFile::open(folder_ / "again/adapter_model.safetensors");
    ASSERT_EQ(two.names().size(), one.names().size());
    for (const std::string& name : one.names()) EXPECT_EQ(two.read_f32(name), one.read_f32(name)) << name;
  }
}

TEST_F(AdapterFormats, OfPeftInPeftsFormAreTheSameFiles) {
  LoRAOptions options{.rank = 3, .alpha = 6};
  options.rank_pattern = {{"down_proj", 2}};
  write(options, {"q_proj", "down_proj"});
  convert("peft", AdapterFormat::peft, "again");
  EXPECT_EQ(slurp(folder_ / "again/adapter_config.json"), slurp(folder_ / "peft/adapter_config.json"));
  EXPECT_EQ(slurp(folder_ / "again/adapter_model.safetensors"),
            slurp(folder_ / "peft/adapter_model.safetensors"));
  EXPECT_CONTAINS(error_of<FileError>([&] { convert("again", AdapterFormat::mlx, "peft"); }),
                  "another format");
}

TEST_F(AdapterFormats, OwnRanksAndScalesOfModulesAreKept) {
  LoRAOptions options{.rank = 4, .alpha = 6};
  options.use_rslora = true;
  options.rank_pattern = {{"q_proj", 2}};
  options.alpha_pattern = {{"down_proj", 1.5}};
  options.layers_to_transform = {1, 2};
  write(options, {"q_proj", "down_proj"});
  convert("peft", AdapterFormat::mlx, "mlx");
  convert("peft", AdapterFormat::gguf, "adapter.gguf");
  expect_equal_logits("mlx", 1e-6);
  expect_equal_logits("adapter.gguf", 1e-6);
}

TEST_F(AdapterFormats, AreTheFilesOfMlx) {
  LoRAOptions options{.rank = 3, .alpha = 6};
  options.use_dora = true;
  options.layers_to_transform = {1, 2};
  write(options, {"q_proj", "down_proj"});
  convert("peft", AdapterFormat::mlx, "mlx");
  const auto config = nlohmann::json::parse(slurp(folder_ / "mlx/adapter_config.json"));
  EXPECT_EQ(config.at("fine_tune_type"), "dora");
  EXPECT_EQ(config.at("num_layers"), 2) << "the last two of three";
  EXPECT_EQ(config.at("lora_parameters").at("rank"), 3);
  EXPECT_EQ(config.at("lora_parameters").at("scale"), 2.0);
  EXPECT_EQ(config.at("lora_parameters").at("keys"), nlohmann::json({"mlp.down_proj", "self_attn.q_proj"}));
  // mlx-lm: y = x W + scale * (x lora_a) lora_b.
  const SafetensorsFile mlx = SafetensorsFile::open(folder_ / "mlx/adapters.safetensors");
  const SafetensorsFile peft = SafetensorsFile::open(folder_ / "peft/adapter_model.safetensors");
  const std::string path = "model.layers.1.mlp.down_proj";
  EXPECT_EQ(mlx.info(path + ".lora_a").shape, (Shape{48, 3}));
  EXPECT_EQ(mlx.info(path + ".lora_b").shape, (Shape{3, 32}));
  const auto a = mlx.read_f32(path + ".lora_a"),
             as_peft = peft.read_f32("base_model.model." + path + ".lora_A.weight");
  for (std::size_t i = 0; i < 48; ++i)
    for (std::size_t r = 0; r < 3; ++r) ASSERT_EQ(a[i * 3 + r], as_peft[r * 48 + i]);
  EXPECT_EQ(mlx.read_f32(path + ".m"), peft.read_f32("base_model.model." + path + ".lora_magnitude_vector"));
  expect_equal_logits("mlx", 1e-6);
}

TEST_F(AdapterFormats, AreTheFilesOfLlamaCpp) {
  write({.rank = 2, .alpha = 6}, {"q_proj", "k_proj", "down_proj"});
  convert("peft", AdapterFormat::gguf, "adapter.gguf");
  const detail::GgufFile file = detail::GgufFile::open(folder_ / "adapter.gguf");
  EXPECT_EQ(file.string("general.type"), "adapter");
  EXPECT_EQ(file.string("adapter.type"), "lora");
  EXPECT_EQ(file.string("general.architecture"), "llama");
  EXPECT_EQ(file.number("adapter.lora.alpha"), 6.0);
  const SafetensorsFile peft = SafetensorsFile::open(folder_ / "peft/adapter_model.safetensors");
  // convert_hf_to_gguf.py permutes rows of q and k: reshape(heads, 2, d / 2, ...).swapaxes(1, 2).
  for (const auto& [gguf, hugging_face, heads] :
       {std::tuple{"blk.2.attn_q.weight.lora_b", "self_attn.q_proj", std::size_t{4}},
        std::tuple{"blk.2.attn_k.weight.lora_b", "self_attn.k_proj", std::size_t{2}}}) {
    const auto b =
        peft.read_f32(fmt::format("base_model.model.model.layers.2.{}.lora_B.weight", hugging_face));
    const auto tensor = std::ranges::find(file.tensors(), std::string(gguf), &detail::GgufTensor::name);
    ASSERT_NE(tensor, file.tensors().end()) << gguf;
    std::vector<float> written(b.size());
    std::memcpy(written.data(), tensor->bytes.data(), tensor->bytes.size());
    const std::size_t d = b.size() / 2 / heads;
    std::size_t at = 0;
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t i = 0; i < d / 2; ++i)
        for (std::size_t j = 0; j < 2; ++j)
          for (std::size_t r = 0; r < 2; ++r)
            ASSERT_EQ(written[at++], b[(h * d + j * d / 2 + i) * 2 + r]) << gguf;
  }
  const auto down =
      std::ranges::find(file.tensors(), "blk.0.ffn_down.weight.lora_a", &detail::GgufTensor::name);
  ASSERT_NE(down, file.tensors().end());
  EXPECT_EQ(down->shape, (Shape{2, 48}));
}

TEST_F(AdapterFormats, SayWhatTheyCannotHold) {
  LoRAOptions dora{.rank = 2};
  dora.use_dora = true;
  write(dora, {"q_proj"});
  EXPECT_CONTAINS(error_of<FileError>([&] { convert("peft", AdapterFormat::gguf, "x.gguf"); }), "no DoRA");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.gguf"));
  folder_.put("text.gguf", "GGUF nothing");
  EXPECT_THROW(convert("text.gguf", AdapterFormat::peft, "y"), FileError);
  convert("peft", AdapterFormat::mlx, "mlx");
  for (const auto& [with, what] : {std::pair{R"({"fine_tune_type": "full"})", "no adapter"},
                                   std::pair{R"({"fine_tune_type": "lora"})", "lora_parameters"},
                                   std::pair{R"({"lora_parameters": {"scale": -1}})", "positive"}}) {
    folder_.put("mlx/adapter_config.json", with);
    EXPECT_CONTAINS(error_of<FileError>([&] { logits_of_adapted(folder_ / "mlx"); }), what);
  }
  // Of another model.
  const Llama other(tiny_llama({.hidden = 16, .layers = 3}), Device::cpu(), 5);
  write({.rank = 2}, {"q_proj"});
  convert("peft", AdapterFormat::gguf, "adapter.gguf");
  Llama small(tiny_llama({.hidden = 16, .layers = 3}), Device::cpu(), 5);
  EXPECT_CONTAINS(error_of<FileError>([&] { load_adapter(small, folder_ / "adapter.gguf"); }),
                  "does not fit");
}

}  // namespace
}  // namespace caldera::testing
