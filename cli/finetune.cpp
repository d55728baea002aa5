// caldera finetune: trains a LoRA adapter for a model.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/arguments/adapter_flags.h"
#include "cli/arguments/command.h"
#include "cli/arguments/model_flags.h"
#include "cli/arguments/objective_flags.h"
#include "cli/arguments/usage_error.h"
#include "cli/files/inputs.h"
#include "cli/training/dry_run.h"
#include "cli/training/reference_flags.h"
#include "cli/training/run_settings.h"
#include "cli/training/training_run.h"
#include "engine/base/error.h"
#include "engine/distributed/distributed.h"
#include "lm/adapters/lora.h"
#include "lm/chat/model_chat_templates.h"
#include "lm/formats/convert/convert.h"
#include "lm/tokenizers/sources/load_tokenizer.h"
#include "training/data/forms/chat_format.h"
#include "training/objectives/registry.h"

namespace caldera::cli {
namespace {

class FinetuneCommand : public Command {
 public:
  FinetuneCommand() : Command("finetune", "Train a LoRA adapter for a model") {}

  std::optional<std::filesystem::path> settings_file(
      const std::vector<std::string>& arguments) const override {
    return find_settings(arguments, "--config");
  }

 protected:
  void add_options(Arguments& args) override {
    flags_.declare_settings(args, "--config,--settings");
    declare_model(args, model_);
    flags_.declare(args);
    flags_.optimizer.declare_lora_plus(args);
    flags_.sharing.declare_shard_base(args);
    objective_.declare(args);
    reference_.declare(args);
    add_memory_limit(args);
    adapter_.declare(args);
  }

  void run() override {
    flags_.objective = objective_.options();
    const DataNeeds needs = make_objective(flags_.objective)->needs();
    flags_.data.mask_prompt = flags_.data.mask_prompt || needs.completions_only;
    const bool full = adapter_.is_full();
    flags_.check(full ? std::vector<const char*>{"config.json", "model.safetensors", "tokenizer.json"}
                      : std::vector<const char*>{"adapter_config.json", "adapter_model.safetensors"});
    adapter_.remove_unused(flags_.settings);
    check_shard_base();
    const Device device = open_device();
    const std::unique_ptr<CausalLM> model = open_model(model_, device);
    adapter_.resolve(*model);
    const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(model_);
    ChatFormat chat(load_chat_templates(model_));
    const TrainingData data = load_training_data(flags_, *tokenizer, model->config(), &chat);
    const std::string what = load_and_adapt(*model);

    const std::unique_ptr<CausalLM> reference = reference_.load(*model, parse_dtype(flags_.dtype));

    if (flags_.dry_run) return show(ObjectiveModels(*model, reference.get(), tokenizer), data, *tokenizer);
    note(data.remark);
    note(fmt::format("training {} of {} parameters, {}, on {}", model->trainable_parameter_count(),
                     model->parameter_count(), what, device.to_string()));
    report(run_training(ObjectiveModels(*model, reference.get(), tokenizer), flags_, data,
                        {.marker = full ? "config.json" : "adapter_config.json",
                         .write = [&](const std::filesystem::path& folder,
                                      StagedFiles& files) { save(*model, folder, files); },
                         .tokenizer = *tokenizer}));
  }

 private:
  void check_shard_base() const {
    if (!flags_.sharing.shard_base) return;
    if (adapter_.is_full())
      throw UsageError("--shard-base divides what is frozen: --adapter-type full freezes nothing");
    if (!flags_.sample_prompt.empty() || make_objective(flags_.objective)->name() != "sft")
      throw UsageError(
          "--shard-base: every process has to compute the same; leave out --sample-prompt, and use "
          "--objective sft");
  }

  /// Loads the weights and makes trainable what is to be trained; says what.
  std::string load_and_adapt(CausalLM& model) const {
    try {
      // Of weights in mapped files only the part that a process keeps is read.
      const bool is_divided = flags_.sharing.shard_base && distributed::init().size() > 1;
      load_weights(model, model_, {}, parse_dtype(flags_.dtype),
                   is_divided ? halves_for_inference(model.device()) : HalfWeights::converted);
      if (is_divided) note(flags_.sharing.divide(model));
      return adapter_.make_trainable(model, flags_.options.seed, model_);
    } catch (const OutOfMemoryError& error) {
      throw OutOfMemoryError(fmt::format(
          "{}; this is the model alone: caldera fit says what limit its training takes", error.what()));
    }
  }

  void save(CausalLM& model, const std::filesystem::path& folder, StagedFiles& files) const {
    if (!adapter_.is_full()) return save_adapter(model, folder, files, model_);
    add_tokenizer_files(files, model_, folder);
    model.save(folder, files);
  }

  void show(const ObjectiveModels& models, const TrainingData& data, const Tokenizer& tokenizer) const {
    if (distributed::started_rank() > 0) return;
    if (json()) return print_json(describe_dry_run(models, flags_, data, tokenizer));
    print_dry_run(models, flags_, data, tokenizer);
  }

  void report(const nlohmann::ordered_json& trained) const {
    nlohmann::ordered_json document = trained;
    const char* const what = adapter_.is_full() ? "model" : "adapter";
    document[what] = flags_.out;
    if (json()) return print_json(document);
    print_trained(trained, "finetune", what, flags_.out);
  }

  std::string model_;
  ReferenceFlags reference_;
  TrainingFlags flags_;
  ObjectiveFlags objective_;
  AdapterFlags adapter_;
};

}  // namespace

CommandPtr make_finetune_command() { return std::make_unique<FinetuneCommand>(); }

}  // namespace caldera::cli
