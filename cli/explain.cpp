// caldera explain: what a task becomes: the plan, its kernels and their cost, its memory, and how long it
// takes.
#include "engine/runtime/inspect/explain.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/arguments/command.h"
#include "cli/arguments/domains.h"
#include "cli/arguments/model_flags.h"
#include "cli/files/outputs.h"
#include "cli/training/explain_tasks.h"
#include "cli/training/memory_report.h"
#include "lm/base/atomic_file.h"

namespace caldera::cli {
namespace {

constexpr const char* kPromptTasks = "For --task forward and decode";
constexpr const char* kDecodeTask = "For --task decode";
constexpr const char* kTrainTask = "For --task train (finetune's flags)";

/// The last part of a path, whether or not it ends in a slash.
std::string folder_name(const std::filesystem::path& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

class ExplainCommand : public Command {
 public:
  ExplainCommand()
      : Command("explain", "Show what a task becomes: kernels, their cost and code, memory over time") {}

 protected:
  void add_options(Arguments& args) override {
    declare_model(args, flags_.model);
    declare_adapter(args, flags_.adapter)
        .description("LoRA adapter folder to apply to the model (train: to go on with)");
    args.option("--task", task_,
                "forward: a prompt through the model; decode: a token after a prompt; train: a LoRA training "
                "step. It runs until it repeats; what is shown is a run that repeats an earlier one")
        .required()
        .one_of({"forward", "decode", "train"})
        .type_name("T");
    args.option("--dot", dot_, "Write the graph after fusion there, for Graphviz").type_name("FILE");
    args.option("--html", html_,
                "Write a page there: the graph before and after fusion, the kernels with their code, memory "
                "over time")
        .type_name("FILE");
    args.option("--trace", trace_,
                "Write a trace of the run there, for ui.perfetto.dev or chrome://tracing: what the host did, "
                "every kernel of the device with its cost and rates, and the device's memory over time")
        .type_name("FILE");
    declare_prompt(args);
    declare_training(args);
    add_memory_limit(args);
    limit_to(kTrainTask, {args.get("--memory-limit")});
  }

  void run() override {
    check_flags();
    const Device device = open_device();
    SteadyRun steady = task_ == "forward"  ? explain_forward(flags_, device)
                       : task_ == "decode" ? explain_decode(flags_, device)
                                           : explain_train(flags_, device);
    // A step may take several evaluations (gradient accumulation): the largest one is shown.
    Explanation explanation = explain(steady.runs);
    explanation.title = fmt::format("{} of {}", task_, folder_name(flags_.model));

    StagedFiles files;
    if (!dot_.empty()) files.add_text(dot_, to_dot(explanation));
    if (!html_.empty()) files.add_text(html_, page_of(explanation, steady));
    if (!trace_.empty()) files.add_text(trace_, to_trace(steady.runs, steady.spans));
    files.commit();
    if (!json()) {
      fmt::print("{}", to_text(explanation));
      if (steady.runs.size() > 1) fmt::print("the largest of {} evaluations\n", steady.runs.size());
      if (!steady.memory.empty()) print_memory(steady.memory);
      return;
    }
    nlohmann::ordered_json document = nlohmann::ordered_json::parse(to_json(explanation));
    document["task"] = task_;
    document["evaluations"] = steady.runs.size();
    if (!steady.memory.empty()) {
      document["memory"] = describe_curve(steady.memory);
      if (steady.memory.back().choice) document["choice"] = describe_memory(*steady.memory.back().choice);
    }
    print_json(document);
  }

 private:
  /// The page of the step, and below it the picture of its memory under limits.
  static std::string page_of(const Explanation& explanation, const SteadyRun& steady) {
    std::string page = to_html(explanation);
    if (steady.memory.empty()) return page;
    const std::string end = "</body>";
    const std::size_t at = page.rfind(end);
    return page.insert(at == std::string::npos ? page.size() : at, curve_svg(steady.memory));
  }

  /// The last row is the limit that was given.
  static void print_memory(const std::vector<MemoryRow>& rows) {
    fmt::print("\nmemory under limits (the last is the one given):\n{}", curve_text(rows));
    if (rows.back().choice) fmt::print("{}", memory_text(*rows.back().choice));
  }

  void declare_prompt(Arguments& args) {
    const Option text = args.option("--prompt", flags_.prompt, "Text of the prompt").type_name("S");
    const Option ids = args.option("--prompt-ids", flags_.prompt_ids,
                                   "Token ids of the prompt (default: 64 of them, or fewer if the model has "
                                   "fewer positions)")
                           .type_name("IDS");
    text.excludes(ids);
    prompt_option_ = text;
    limit_to(kPromptTasks, {text, ids});
    const std::size_t before = args.all().size();
    args.option("--max-tokens", flags_.max_tokens,
                "Tokens that generate would be asked for: room in the cache")
        .type_name("N")
        .check(integer_in(0))
        .show_default();
    declare_sampling(args, flags_.sampling);
    limit_since(args, before, kDecodeTask);
  }

  void declare_training(Arguments& args) {
    const std::size_t before = args.all().size();
    flags_.training.declare(args);
    declare_lora(args, flags_.lora, flags_.targets);
    limit_since(args, before, kTrainTask);
    args.get("--data").required(false).description(
        "Training data as finetune takes it; its first batch is used (default: sequences of --seq-len, else "
        "64, tokens)");
    args.get("--out").required(false).description("Not written to: nothing is saved");
    args.get("--log").description("Not written to: nothing is saved");
    for (const char* shared : {"--seed", "--dtype"}) {
      const Option option = args.get(shared).group("Options");
      std::erase_if(limited_, [&](const auto& entry) { return entry.second == option; });
    }
  }

  void limit_to(const char* group, const std::vector<Option>& options) {
    for (const Option option : options) {
      option.group(group);
      limited_.emplace_back(group, option);
    }
  }
  /// All options declared after the first `before`.
  void limit_since(Arguments& args, std::size_t before, const char* group) {
    const std::vector<Option> all = args.all();
    limit_to(group, {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()});
  }

  void check_flags() {
    for (const auto& [group, option] : limited_) {
      const bool fits = group == kTrainTask    ? task_ == "train"
                        : group == kDecodeTask ? task_ == "decode"
                                               : task_ != "train";
      if (option.given() && !fits)
        throw UsageError(fmt::format("{} does not go with --task {}", option.name(), task_));
    }
    if (!dot_.empty()) check_output_file(dot_, "--dot");
    if (!html_.empty()) check_output_file(html_, "--html");
    if (!trace_.empty()) check_output_file(trace_, "--trace");
    flags_.prompt_is_text = prompt_option_.given();
    flags_.sampling.seed = flags_.training.options.seed;
  }

  ExplainFlags flags_;
  std::string task_;
  std::string dot_;
  std::string html_;
  std::string trace_;
  Option prompt_option_;
  std::vector<std::pair<const char*, Option>> limited_;  // options that only some tasks have, by group
};

}  // namespace

CommandPtr make_explain_command() { return std::make_unique<ExplainCommand>(); }

}  // namespace caldera::cli
