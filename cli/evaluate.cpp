// caldera evaluate: the loss of a model on a data file, by any objective.
#include "training/evaluate/evaluate.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/arguments/command.h"
#include "cli/arguments/domains.h"
#include "cli/arguments/model_flags.h"
#include "cli/arguments/objective_flags.h"
#include "cli/files/inputs.h"
#include "cli/training/data_flags.h"
#include "cli/training/reference_flags.h"
#include "cli/training/training_run.h"
#include "lm/chat/model_chat_templates.h"
#include "lm/tokenizers/sources/load_tokenizer.h"
#include "training/data/forms/chat_format.h"
#include "training/objectives/registry.h"
#include "training/trainer/json_log.h"

namespace caldera::cli {
namespace {

// Longer than for training: here only the longest sequences cost memory, and cutting one changes the result.
constexpr std::int64_t kEvaluationSeqLen = 2048;

class EvaluateCommand : public Command {
 public:
  EvaluateCommand() : Command("evaluate", "Loss and perplexity of a model on a text") {}

 protected:
  void add_options(Arguments& args) override {
    declare_model(args, model_);
    declare_adapter(args, adapter_);
    data_.declare(args);
    objective_.declare(args);
    reference_.declare(args);
    args.option("--part", part_, "The part of folders to evaluate on")
        .one_of({"test", "valid", "train"})
        .type_name("PART")
        .show_default();
    args.option("--seq-len", seq_len_,
                fmt::format("Most tokens a sequence (default: {}, or the model's positions if fewer)",
                            kEvaluationSeqLen))
        .type_name("N")
        .check(integer_in(1, 1 << 24));
    args.option("--batch-size", batch_size_,
                "Sequences a batch; the result does not depend on it, but of embedding, which compares those "
                "of a batch")
        .type_name("N")
        .check(integer_in(1, 1 << 20))
        .show_default();
    add_memory_limit(args);
  }

  void run() override {
    const std::unique_ptr<Objective> objective = make_objective(objective_.options());
    data_.mask_prompt = data_.mask_prompt || objective->needs().completions_only;
    check_batches(*objective, batch_size_, false);
    const Device device = open_device();
    const std::unique_ptr<CausalLM> model = open_model(model_, device);
    const ModelConfig& config = model->config();
    const std::int64_t seq_len = choose_seq_len(seq_len_, kEvaluationSeqLen, config);
    const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(model_);
    ChatFormat chat(load_chat_templates(model_));
    const std::vector<ExampleSet> files = read_part(chat);
    const TokenDataset data(files, *tokenizer, data_.dataset_options(seq_len));
    check_fits(data, config);
    check_fits(data, *objective);
    load_weights(*model, model_, adapter_);
    const std::unique_ptr<CausalLM> second = reference_.load(*model, DType::f32);
    const ObjectiveModels models(*model, second.get(), tokenizer);
    if (objective->needs_reference()) models.require_reference(objective->name());
    if (objective->needs_teacher()) models.require_teacher(objective->name());

    const Evaluation result =
        caldera::evaluate(models, *objective, batches_for_evaluation(data, batch_size_));
    if (!std::isfinite(result.loss))
      throw Error(fmt::format("{}: the loss is {}; the weights of the model or of the adapter are damaged",
                              model_, result.loss));
    const std::string remarks = describe_losses(data.losses(), seq_len) + describe_rows(files);
    if (!remarks.empty()) note(fmt::format("data: {} sequences{}", data.size(), remarks));
    print(result, objective->name() == "sft");
  }

 private:
  std::vector<ExampleSet> read_part(ChatFormat& chat) const {
    const DataFileOptions options = data_.file_options(&chat);
    DataSplits splits =
        load_splits(data_.data_paths(), options,
                    {.train = part_ == "train", .valid = part_ == "valid", .test = part_ == "test"});
    // A file by itself is a part of its own.
    std::vector<ExampleSet> files = std::move(splits.train);
    for (std::vector<ExampleSet>* more : {&splits.valid, &splits.test})
      for (ExampleSet& file : *more) files.push_back(std::move(file));
    if (files.empty())
      throw FileError(fmt::format("{}: holds no {} part; --part names another", data_.shown(), part_));
    return files;
  }

  /// The perplexity is that of predictions of tokens alone.
  void print(const Evaluation& result, bool of_tokens) const {
    nlohmann::ordered_json document{{"loss", result.loss}};
    std::string text = fmt::format("loss {:.4f}", result.loss);
    if (of_tokens) {
      document["perplexity"] = std::exp(result.loss);
      text += fmt::format("  perplexity {:.2f}", std::exp(result.loss));
    }
    for (const Metric& metric : result.metrics) {
      document[metric.name] = nine_digits(metric.value);
      text += fmt::format("  {} {:.4f}", metric.name, metric.value);
    }
    document["tokens"] = result.tokens;
    if (json()) return print_json(document);
    fmt::print("{}  tokens {}\n", text, result.tokens);
  }

  std::string model_;
  std::string adapter_;
  ObjectiveFlags objective_;
  ReferenceFlags reference_;
  DataFlags data_;
  std::string part_ = "test";
  std::optional<std::int64_t> seq_len_;
  std::int64_t batch_size_ = 4;
};

}  // namespace

CommandPtr make_evaluate_command() { return std::make_unique<EvaluateCommand>(); }

}  // namespace caldera::cli
