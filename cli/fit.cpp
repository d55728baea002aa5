// caldera fit: what a LoRA training step may be, within a limit of memory, before anything runs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "cli/arguments/adapter_flags.h"
#include "cli/arguments/command.h"
#include "cli/arguments/model_flags.h"
#include "cli/arguments/usage_error.h"
#include "cli/files/inputs.h"
#include "cli/training/memory_report.h"
#include "cli/training/training_run.h"
#include "engine/base/byte_size.h"
#include "engine/runtime/runtime.h"
#include "training/trainer/memory_curve.h"

namespace caldera::cli {
namespace {

/// Rows of a batch that are tried at most.
constexpr std::int64_t kMostRows = 4096;

class FitCommand : public Command {
 public:
  FitCommand()
      : Command("fit", "Find the longest text and the largest batch that training fits into memory") {
    flags_.options.batch_size = 1;
  }

 protected:
  void add_options(Arguments& args) override {
    declare_model(args, model_);
    flags_.declare(args);
    add_memory_limit(args);
    adapter_.declare(args);
    args.get("--data").required(false).description("Refused: rows of tokens stand for any text");
    args.get("--dry-run").description("Refused: nothing is trained, so there is nothing to try");
    args.get("--resume").description("Refused: nothing is trained, so there is nothing to go on with");
    for (const char* name : {"--data", "--dry-run", "--resume"}) refused_.push_back(args.get(name));
    args.get("--out").required(false).description("Not written to: nothing is saved");
    args.get("--batch-size").description("Rows of the batch whose longest text is asked for");
    args.get("--seq-len").description("Tokens of the rows whose largest batch is asked for");
  }

  void run() override {
    for (const Option& option : refused_) {
      if (!option.given()) continue;
      throw UsageError(fmt::format(
          "{}: fit reads no data and trains nothing; leave it out, or see what a run on the data takes with "
          "caldera finetune --dry-run",
          option.name()));
    }
    const Device device = open_device();
    const std::uint64_t limit = device_counters(device).limit_bytes;
    if (limit == 0)
      throw UsageError("there is no limit to fit into: give --memory-limit, or set CALDERA_MEMORY_LIMIT");
    flags_.apply();
    // The model may not fit either: that is an answer, too.
    set_memory_limit(device, 0);
    const std::unique_ptr<CausalLM> model = open_model(model_, device);
    adapter_.resolve(*model);
    load_weights(*model, model_, {}, parse_dtype(flags_.dtype));
    adapter_.make_trainable(*model, flags_.options.seed, model_);
    const ModelConfig& config = model->config();
    const std::int64_t seq_len = choose_seq_len(flags_.seq_len, kTrainingSeqLen, config);
    set_memory_limit(device, limit);
    const MemoryFit fit = fit_memory(*model, flags_.options, seq_len, config.max_positions(), kMostRows);
    if (json()) {
      nlohmann::ordered_json document = describe_memory(fit.choice);
      if (fit.longest_seq_len == 0) document["peak_bytes"] = nullptr;
      document["limit_bytes"] = limit;
      if (fit.longest_seq_len == 0) document["least_bytes"] = fit.least_bytes;
      document["longest_seq_len"] = fit.longest_seq_len;
      document["largest_batch"] = fit.largest_batch;
      document["batch_size"] = flags_.options.batch_size;
      document["seq_len"] = seq_len;
      return print_json(document);
    }
    if (fit.longest_seq_len == 0) {
      fmt::print("not even one token a row fits, with {} rows a batch: at least {} is needed\n",
                 flags_.options.batch_size, format_bytes_up(static_cast<std::int64_t>(fit.least_bytes)));
    } else {
      fmt::print("longest text:  {} tokens a row{}, with {} rows a batch\n", fit.longest_seq_len,
                 fit.longest_seq_len == config.max_positions() ? " (all positions of the model)" : "",
                 flags_.options.batch_size);
    }
    fmt::print("largest batch: {} rows{} of {} tokens\n", fit.largest_batch,
               fit.largest_batch == kMostRows ? " (or more)" : "", seq_len);
    if (fit.longest_seq_len > 0) fmt::print("{}", memory_text(fit.choice));
  }

 private:
  std::string model_;
  TrainingFlags flags_;
  AdapterFlags adapter_;
  std::vector<Option> refused_;  // of finetune, without a meaning here
};

}  // namespace

CommandPtr make_fit_command() { return std::make_unique<FitCommand>(); }

}  // namespace caldera::cli
