// caldera explain: what a task becomes: the plan, its kernels and their cost, its memory, and how long it
// takes.
#include "engine/runtime/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/arguments/domains.h"
#include "cli/arguments/model_flags.h"
#include "cli/command.h"
#include "cli/explain_tasks.h"
#include "cli/files/outputs.h"
#include "engine/plan/dependencies.h"
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
  }

  void run() override {
    check_flags();
    const Device device = open_device();
    SteadyRun steady = task_ == "forward"  ? explain_forward(flags_, device)
                       : task_ == "decode" ? explain_decode(flags_, device)
                                           : explain_train(flags_, device);
    // A step may take several evaluations (gradient accumulation): the largest one is shown.
    const auto largest = std::max_element(
        steady.runs.begin(), steady.runs.end(),
        [](const auto& a, const auto& b) { return a->plan->node_count < b->plan->node_count; });
    Explanation explanation = explain(**largest);
    explanation.title = fmt::format("{} of {}", task_, folder_name(flags_.model));
    explanation.submits = std::accumulate(steady.runs.begin(), steady.runs.end(), std::uint64_t{0},
                                          [](std::uint64_t sum, const auto& r) { return sum + r->submits; });

    StagedFiles files;
    if (!dot_.empty()) files.add_text(dot_, to_dot(explanation));
    if (!html_.empty()) files.add_text(html_, to_html(explanation));
    if (!trace_.empty()) files.add_text(trace_, to_trace(steady.runs, steady.spans));
    files.commit();
    if (!json()) return print(explanation, steady.runs.size());
    nlohmann::ordered_json document = nlohmann::ordered_json::parse(to_json(explanation));
    document["task"] = task_;
    document["evaluations"] = steady.runs.size();
    print_json(document);
  }

 private:
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

  void print(const Explanation& e, std::size_t evaluations) const {
    const Plan& plan = *e.plan;
    StepCost total;
    for (const StepCost& cost : e.costs) total += cost;
    fmt::print("{} on {}: {} nodes -> {} dispatches, {} barriers (depth {}), {} submits, plan cache {}\n",
               e.title, plan.device.to_string(), plan.node_count, plan.dispatch_count(), plan.barrier_count(),
               depth_of(plan), e.submits, e.cache_hit ? "hit" : "miss");
    if (evaluations > 1) fmt::print("the largest of {} evaluations\n", evaluations);
    fmt::print("{:.1f} us; {:.2f} MFLOP, {} read and written; arena {}, peak {}\n\n", e.seconds * 1e6,
               static_cast<double>(total.flops) * 1e-6, format_bytes(total.bytes()),
               format_bytes(plan.arena_bytes), format_bytes(plan.peak_bytes));

    constexpr std::size_t kShown = 24;
    std::vector<std::size_t> order(plan.steps.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const bool timed = !e.step_seconds.empty();
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return timed ? e.step_seconds[a] > e.step_seconds[b] : e.costs[a].bytes() > e.costs[b].bytes();
    });
    fmt::print("{:>5} {:>10} {:>5} {:>12} {:>12}  kernel, {} first\n", "step", "us", "ops", "flop", "bytes",
               timed ? "slowest" : "widest");
    for (std::size_t k = 0; k < std::min(kShown, order.size()); ++k) {
      const std::size_t i = order[k];
      fmt::print("{:>5} {:>10} {:>5} {:>12} {:>12}  {} {}\n", i,
                 timed ? fmt::format("{:.1f}", e.step_seconds[i] * 1e6) : "-", e.costs[i].ops,
                 e.costs[i].flops, e.costs[i].bytes(), plan.steps[i].name(), plan.steps[i].dims.to_string());
    }
    if (order.size() > kShown) fmt::print("and {} more: see --json or --html\n", order.size() - kShown);
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
