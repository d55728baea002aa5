// Adapters on a model and in PEFT's files.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lm/adapters/adapter_config.h"
#include "lm/adapters/lora.h"
#include "lm/formats/safetensors/safetensors.h"
#include "ops/ops.h"
#include "tests/lm/models/reference_llama.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

namespace fs = std::filesystem;

class LoraFilesTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Llama> make_model() {
    return std::make_unique<Llama>(small_config(4, 2), Device::cpu(), 1);
  }

  /// A model with an adapter whose factors are all random, saved in dir_.
  std::unique_ptr<Llama> save_random(const std::vector<std::string>& targets) const {
    auto model = make_model();
    apply_lora(*model, {.rank = 3, .alpha = 7, .dropout = 0.25}, targets, 1);
    std::uint64_t seed = 70;
    for (const Parameter& p : model->trainable_parameters())
      *p.tensor = make_tensor(random_doubles(p.tensor->numel(), seed++), p.tensor->shape(), DType::f32,
                              Device::cpu());
    model->set_training(false);
    save_adapter(*model, dir_, "base");
    return model;
  }

  void expect_refused(Llama& model, const std::vector<std::string>& parts) const {
    const std::size_t before = model.parameters().size();
    try {
      load_adapter(model, dir_);
      FAIL() << "the adapter was accepted";
    } catch (const FileError& e) {
      const std::string message = e.what();
      for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
    }
    EXPECT_EQ(model.parameters().size(), before) << "the model was changed";
  }

  TempFolder folder_;
  const fs::path dir_ = folder_ / "files";
};

const std::vector<std::int32_t> kTokens{1, 5, 9, 30};

Doubles logits_with(Llama& model) { return to_doubles(model.forward(model.make_ids(kTokens))); }

TEST_F(LoraFilesTest, ModelWithAnAdapterAgreesWithPlainLoops) {
  const auto model = save_random({"all-linear"});
  LlamaReference reference(*model);
  reference.lora_scaling = 7.0 / 3.0;
  expect_close(model->forward(model->make_ids(kTokens)), reference.forward(kTokens, 1), 1e-4);
}

TEST_F(LoraFilesTest, RoundTrip) {
  for (const std::vector<std::string>& targets :
       {std::vector<std::string>{"all-linear"}, {"q_proj", "v_proj"}, {"down_proj"}}) {
    const auto saved = save_random(targets);
    const auto loaded = make_model();
    loaded->set_training(false);
    const Doubles base = logits_with(*loaded);
    const std::size_t modules = load_adapter(*loaded, dir_);
    EXPECT_EQ(modules, resolve_lora_targets(*loaded, targets).size() * 2);
    EXPECT_EQ(logits_with(*loaded), logits_with(*saved));
    EXPECT_NE(logits_with(*loaded), base);
    EXPECT_EQ(loaded->trainable_parameters().size(), modules * 2);
  }
}

TEST_F(LoraFilesTest, FilesAreInTheFormatOfPeft) {
  save_random({"v_proj", "q_proj"});
  const AdapterConfig config = AdapterConfig::from_file(dir_ / "adapter_config.json");
  EXPECT_EQ(config.options.rank, 3);
  EXPECT_EQ(config.options.alpha, 7);
  EXPECT_EQ(config.options.dropout, 0.25);
  EXPECT_EQ(config.base_model_name_or_path, "base");
  EXPECT_EQ(config.target_modules, (std::vector<std::string>{"q_proj", "v_proj"}));
  const SafetensorsFile file = SafetensorsFile::open(dir_ / "adapter_model.safetensors");
  EXPECT_EQ(file.names().size(), 8U);
  const std::string prefix = "base_model.model.model.layers.1.self_attn.v_proj.";
  EXPECT_EQ(file.info(prefix + "lora_A.weight").shape, (Shape{3, 20}));
  EXPECT_EQ(file.info(prefix + "lora_B.weight").shape, (Shape{12, 3}));
}

TEST_F(LoraFilesTest, BothFilesAreReplacedOrNeither) {
  const auto model = save_random({"q_proj"});
  const auto content = [&] {
    std::ifstream file(dir_ / "adapter_model.safetensors", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string before = content();
  LazyTensor& factor = *model->trainable_parameters().front().tensor;
  factor = factor + 1.0;
  fs::remove(dir_ / "adapter_config.json");
  fs::create_directory(dir_ / "adapter_config.json");
  EXPECT_THROW(save_adapter(*model, dir_), FileError);
  EXPECT_EQ(content(), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), 2) << "a temporary file is left";
  fs::remove(dir_ / "adapter_config.json");
  save_adapter(*model, dir_);
  EXPECT_NE(content(), before);
}

TEST_F(LoraFilesTest, AnAdapterOfAnotherScaleReplacesTheFolderAsAWhole) {
  const auto model = save_random({"q_proj"});
  std::ofstream(dir_ / "notes.txt") << "mine";
  const auto inode = fs::hard_link_count(dir_ / "notes.txt");
  const auto other = make_model();
  apply_lora(*other, {.rank = 2, .alpha = 9}, {"v_proj"}, 1);
  save_adapter(*other, fs::path(dir_.string() + "/"));
  const auto loaded = make_model();
  load_adapter(*loaded, dir_);
  EXPECT_EQ(AdapterConfig::from_file(dir_ / "adapter_config.json").options.alpha, 9);
  EXPECT_EQ(loaded->trainable_parameters().size(), 4U);
  EXPECT_TRUE(fs::exists(dir_ / "notes.txt"));
  EXPECT_EQ(fs::hard_link_count(dir_ / "notes.txt"), inode);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), 3);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "the old folder is left";
}

TEST_F(LoraFilesTest, ABaseModelWhosePathIsNoTextIsNoHindrance) {
  const auto model = save_random({"q_proj"});
  save_adapter(*model, dir_, "models/b\xE9r");
  EXPECT_EQ(AdapterConfig::from_file(dir_ / "adapter_config.json").base_model_name_or_path,
            "models/b\xEF\xBF\xBDr");
}

TEST_F(LoraFilesTest, AModelTakesOneAdapter) {
  const auto model = save_random({"q_proj"});
  EXPECT_THROW(apply_lora(*model, {}, {"v_proj"}, 1), ValueError);
  EXPECT_THROW(load_adapter(*model, dir_), ValueError);
  const auto plain = make_model();
  EXPECT_THROW(save_adapter(*plain, dir_), ValueError);
}

TEST_F(LoraFilesTest, ARefusedAdapterChangesNothing) {
  const auto model = make_model();
  const std::size_t count = model->trainable_parameters().size();
  EXPECT_THROW(apply_lora(*model, {.rank = 13}, {"all-linear"}, 1), ValueError);  // k_proj is 20 to 12
  EXPECT_THROW(apply_lora(*model, {}, {"embed_tokens"}, 1), ValueError);
  EXPECT_EQ(model->trainable_parameters().size(), count);
}

TEST_F(LoraFilesTest, TensorsThatDoNotFitAreNamed) {
  save_random({"q_proj", "v_proj"});
  AdapterConfig config = AdapterConfig::from_file(dir_ / "adapter_config.json");
  const auto model = make_model();
  config.target_modules = {"q_proj", "v_proj", "o_proj"};
  config.write(dir_ / "adapter_config.json");
  expect_refused(*model, {"model.layers.0.self_attn.o_proj.lora_A.weight (3, 24) is missing"});
  config.target_modules = {"q_proj"};
  config.write(dir_ / "adapter_config.json");
  expect_refused(*model, {"v_proj.lora_A.weight is unexpected"});
  config.target_modules = {"q_proj"};
  config.options.rank = 4;
  config.write(dir_ / "adapter_config.json");
  expect_refused(*model, {"q_proj.lora_A.weight", "(3, 20)", "(4, 20)"});
  config.target_modules = {"c_attn"};
  config.write(dir_ / "adapter_config.json");
  expect_refused(*model, {"c_attn", "q_proj"});
}

TEST_F(LoraFilesTest, MissingFolder) {
  const auto model = make_model();
  expect_refused(*model, {"adapter_config.json"});
}

}  // namespace
}  // namespace caldera::testing
