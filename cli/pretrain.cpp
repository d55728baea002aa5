// caldera pretrain: trains a model from random weights.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/arguments/command.h"
#include "cli/files/inputs.h"
#include "cli/training/dry_run.h"
#include "cli/training/run_settings.h"
#include "cli/training/training_run.h"
#include "lm/base/atomic_file.h"
#include "lm/models/registry.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "lm/tokenizers/sources/tokenizer_json.h"

namespace caldera::cli {
namespace {

namespace fs = std::filesystem;

std::optional<std::int32_t> as_token(std::optional<std::int64_t> id) {
  return id ? std::optional(static_cast<std::int32_t>(*id)) : std::nullopt;
}

class PretrainCommand : public Command {
 public:
  PretrainCommand() : Command("pretrain", "Train a model from random weights") {
    flags_.options.optimizer.learning_rate = 1e-3;
  }

  std::optional<fs::path> settings_file(const std::vector<std::string>& arguments) const override {
    return find_settings(arguments, nullptr);
  }

 protected:
  void add_options(Arguments& args) override {
    flags_.declare_settings(args, "--settings");
    args.option("--config", config_,
                "The model's config.json. A tokenizer.json beside it is used and copied; without one, a "
                "vocab_size of 258 (bytes, bos, eos) or 256 makes the tokens bytes")
        .required()
        .type_name("FILE.json");
    flags_.declare(args);
    add_memory_limit(args);
  }

  void run() override {
    flags_.check({"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"});
    const Device device = open_device();
    const std::unique_ptr<CausalLM> model = make_causal_lm(config_, device, flags_.options.seed);
    const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(model->config());
    const TrainingData data = load_training_data(flags_, *tokenizer, model->config());
    model->materialize();
    model->set_dtype(parse_dtype(flags_.dtype));

    if (flags_.dry_run) return show(ObjectiveModels(*model), data, *tokenizer);
    note(data.remark);
    note(fmt::format("training {} parameters, on {}", model->parameter_count(), device.to_string()));
    report(run_training(ObjectiveModels(*model), flags_, data,
                        {.marker = "config.json",
                         .write =
                             [&](const fs::path& folder, StagedFiles& files) {
                               copy_tokenizer(folder, files);
                               model->save(folder, files);
                             },
                         .tokenizer = *tokenizer}));
  }

 private:
  fs::path beside_config(const char* name) const { return fs::path(config_).parent_path() / name; }

  std::unique_ptr<Tokenizer> open_tokenizer(const ModelConfig& config) const {
    const fs::path path = beside_config("tokenizer.json");
    if (fs::exists(path)) {
      TokenizerJson::Options options{
          .bos_id = as_token(config.bos_token_id), .eos_id = {}, .model_vocab_size = config.vocab_size};
      if (!config.eos_token_ids.empty()) options.eos_id = as_token(config.eos_token_ids.front());
      return std::make_unique<TokenizerJson>(read_text_file(path), path.string(), options);
    }
    if (config.vocab_size != 258 && config.vocab_size != 256) {
      throw FileError(
          fmt::format("{}: there is no tokenizer.json beside it; vocab_size {} needs one (without, it must "
                      "be 258 or 256, for bytes)",
                      config_, config.vocab_size));
    }
    // It would be taken for this model's by whoever reads the folder.
    if (fs::exists(fs::path(flags_.out) / "tokenizer.json")) {
      throw FileError(
          fmt::format("--out {}: holds another model's tokenizer.json, and this model has none; choose "
                      "another folder or remove it",
                      flags_.out));
    }
    return std::make_unique<ByteTokenizer>(config.vocab_size == 258);
  }

  void copy_tokenizer(const fs::path& folder, StagedFiles& files) const {
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      // A tokenizer_config.json alone describes no tokenizer of ours.
      if (fs::exists(beside_config("tokenizer.json")) && fs::exists(beside_config(name)))
        files.add_text(folder / name, read_text_file(beside_config(name)));
    }
  }

  void show(const ObjectiveModels& models, const TrainingData& data, const Tokenizer& tokenizer) const {
    if (json()) return print_json(describe_dry_run(models, flags_, data, tokenizer));
    print_dry_run(models, flags_, data, tokenizer);
  }

  void report(const nlohmann::ordered_json& trained) const {
    nlohmann::ordered_json document = trained;
    document["model"] = flags_.out;
    if (json()) return print_json(document);
    print_trained(trained, "pretrain", "model", flags_.out);
  }

  std::string config_;
  TrainingFlags flags_;
};

}  // namespace

CommandPtr make_pretrain_command() { return std::make_unique<PretrainCommand>(); }

}  // namespace caldera::cli
