// caldera kernels: what the driver makes of a task's kernels, compiled and not run, and the time that a card
// is estimated to take for them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/arguments/command.h"
#include "cli/arguments/domains.h"
#include "cli/arguments/model_flags.h"
#include "cli/training/explain_tasks.h"
#include "engine/base/byte_size.h"
#include "engine/runtime/survey.h"
#include "lm/generate/generator.h"
#include "lm/models/llama.h"
#include "lm/models/registry.h"

namespace caldera::cli {
namespace {

using Json = nlohmann::ordered_json;

/// A kernel with the sums over its dispatches.
struct Row {
  const KernelReport* report = nullptr;
  std::int64_t bytes = 0;
  std::int64_t flops = 0;
  std::int64_t barriers = 0;
  std::int64_t most_groups = 0;
  double seconds = 0;      // on the card, if one was named
  std::string_view bound;  // that most of them take
};

Row row_of(const KernelReport& report, const Card* card) {
  Row row{.report = &report};
  std::map<std::string_view, double> by_bound;
  for (const DispatchFacts& d : report.dispatches) {
    row.bytes += d.bytes;
    row.flops += d.flops;
    row.barriers += d.barrier_before ? 1 : 0;
    row.most_groups = std::max(row.most_groups, d.workgroups);
    if (card == nullptr) continue;
    const TimeEstimate time = estimate_time(*card, report, d);
    row.seconds += time.seconds();
    by_bound[time.bound()] += time.seconds();
  }
  const auto longest = std::ranges::max_element(by_bound, {}, [](const auto& entry) { return entry.second; });
  if (longest != by_bound.end()) row.bound = longest->first;
  return row;
}

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

/// Most that a step of training is shown for: its examples are made, if not computed.
constexpr std::int64_t kMostSequences = std::int64_t{1} << 16;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;

Json json_of(const Row& row, bool has_card, std::int64_t cache_positions) {
  const KernelReport& r = *row.report;
  const KernelStatistics& s = r.statistics;
  Json own = Json::object();
  for (const NamedStatistic& other : s.others) own[other.name] = other.value;
  Json document{{"kernel", r.kernel},
                {"family", r.family},
                {"variant", r.variant},
                {"dims", r.dims},
                {"dispatches", r.dispatches.size()},
                {"barriers", row.barriers},
                {"workgroups", row.most_groups},
                {"workgroup_size", r.workgroup_size},
                {"subgroup_size", r.subgroup_size},
                {"matrices", r.uses_matrices},
                {"bytes", row.bytes},
                {"flops", row.flops},
                {"registers", number(s.registers)},
                {"scalar_registers", number(s.scalar_registers)},
                {"spills", number(s.spills)},
                {"shared_bytes", number(s.shared_bytes)},
                {"scratch_bytes", number(s.scratch_bytes)},
                {"occupancy", number(s.occupancy)},
                {"code_bytes", number(s.code_bytes)},
                {"instructions", number(s.instructions)},
                {"reckoned_us", has_card ? Json(row.seconds * 1e6) : Json()},
                {"bound", has_card ? Json(row.bound) : Json()},
                {"cache_positions", cache_positions > 0 ? Json(cache_positions) : Json()},
                {"statistics", own}};
  if (!r.error.empty()) document["error"] = r.error;
  return document;
}

/// The model whose kernels are shown where none is named.
LlamaConfig small_model() {
  ModelConfig config;
  config.vocab_size = 1024;
  config.hidden_size = 256;
  config.intermediate_size = 512;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 8;
  config.num_key_value_heads = 4;
  config.head_dim = 32;
  config.max_position_embeddings = 4096;
  config.tie_word_embeddings = true;
  return config;
}

std::vector<std::string> card_names() {
  std::vector<std::string> names;
  for (const Card& card : cards()) names.emplace_back(card.name);
  return names;
}

std::string cell(const std::optional<double>& value) { return value ? fmt::format("{:.0f}", *value) : "-"; }

class KernelsCommand : public Command {
 public:
  KernelsCommand()
      : Command("kernels", "Show what the driver makes of a task's kernels: compiles them, runs nothing") {
    flags_.training.options.batch_size = 8;
    flags_.training.seq_len = 512;
    flags_.training.dtype = "bf16";
    flags_.lora.rank = 16;
    flags_.targets = {"all-linear"};
  }

 protected:
  void add_options(Arguments& args) override {
    const Option model = args.option("--model", flags_.model,
                                     "Folder with a config.json; weights are neither read nor needed "
                                     "(default: a small Llama, all tasks)")
                             .type_name("DIR");
    const Option config = args.option("--config", config_, "The config.json itself").type_name("FILE.json");
    model.excludes(config);
    args.option("--task", task_,
                "Of the model: train: a LoRA step; decode: a token; forward: a prompt (default: train)")
        .one_of({"forward", "decode", "train"})
        .type_name("T");
    args.option("--card", card_,
                "Estimate the time on this card: " + fmt::format("{}", fmt::join(card_names(), ", ")))
        .one_of(card_names())
        .type_name("NAME");
    declare_dtype(args, flags_.training.dtype, "What the model computes in");
    train_ = {args.option("--batch-size", flags_.training.options.batch_size, "Sequences of a step")
                  .type_name("N")
                  .check(integer_in(1, kMostSequences))
                  .show_default(),
              args.option("--seq-len", flags_.training.seq_len, "Tokens of a sequence")
                  .type_name("N")
                  .check(integer_in(1, kMostTokens))
                  .show_default("512")};
    const std::size_t before = args.all().size();
    declare_lora(args, flags_.lora, flags_.targets);
    args.get("--target-modules").show_default("all-linear");
    const std::vector<Option> all = args.all();
    train_.insert(train_.end(), all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
    for (const Option option : train_) option.group("For --task train");
    context_option_ = args.option("--context", context_,
                                  "Positions that the cache has room for (decode), rounded up as generate "
                                  "does it: to a power of two of at least 1024, but no more than the model "
                                  "has; or tokens of the prompt (forward)")
                          .type_name("N")
                          .check(integer_in(1, std::int64_t{1} << 24))
                          .show_default()
                          .group("For --task decode and forward");
  }

  void run() override {
    check_flags();
    const Card* const card = card_.empty() ? nullptr : find_card(card_);
    // Plans and the choice of kernels follow the card's width; drivers without their cards know none.
    if (card != nullptr) setenv("CALDERA_VULKAN_UNITS", std::to_string(card->units).c_str(), 0);
    const Device device = open_survey();
    const std::vector<KernelReport> reports = survey_kernels(device, runs(device));
    std::vector<Row> rows;
    rows.reserve(reports.size());
    for (const KernelReport& report : reports) rows.push_back(row_of(report, card));
    if (json()) {
      Json list = Json::array();
      for (const Row& row : rows) list.push_back(json_of(row, card != nullptr, cache_positions_));
      print_json(list);
    } else {
      print(rows, card);
    }
    fail_if_any(reports);
  }

 private:
  /// What the tasks evaluate from one step or token to the next.
  std::vector<std::shared_ptr<const RunRecord>> runs(Device device) {
    const std::filesystem::path config =
        config_.empty() ? std::filesystem::path(flags_.model) : std::filesystem::path(config_);
    flags_.make_random = [&](Device on) -> std::unique_ptr<CausalLM> {
      std::unique_ptr<CausalLM> model =
          has_model() ? make_causal_lm(config, on) : Llama::make_lazily(small_model(), on, 0);
      check_context(model->config());
      return model;
    };
    std::vector<std::shared_ptr<const RunRecord>> runs;
    for (const char* task : {"train", "decode", "forward"}) {
      if (task != task_ && !task_.empty()) continue;
      ExplainFlags flags = flags_;
      // So that the cache of the prompt has room for so many positions.
      flags.prompt_tokens = std::string_view(task) == "decode"
                                ? std::max<std::int64_t>(1, context_ - kCacheHeadroom)
                                : context_;
      const SteadyRun steady = std::string_view(task) == "forward"  ? explain_forward(flags, device)
                               : std::string_view(task) == "decode" ? explain_decode(flags, device)
                                                                    : explain_train(flags, device);
      runs.insert(runs.end(), steady.runs.begin(), steady.runs.end());
      cache_positions_ = std::max(cache_positions_, steady.cache_positions);
    }
    return runs;
  }

  bool has_model() const { return !flags_.model.empty() || !config_.empty(); }

  void check_flags() {
    if (!task_.empty() && !has_model())
      throw UsageError(fmt::format("--task {} needs a model: --model DIR or --config FILE.json", task_));
    if (task_.empty() && has_model()) task_ = "train";
    const std::int64_t batch = flags_.training.options.batch_size, length = *flags_.training.seq_len;
    if (batch * length > kMostTokens)
      throw UsageError(
          fmt::format("--batch-size {} of --seq-len {} is a step of {} tokens; at most {} can be "
                      "shown: make one of them smaller",
                      batch, length, batch * length, kMostTokens));
    if (task_.empty()) return;
    for (const Option option : train_)
      if (option.given() && task_ != "train")
        throw UsageError(fmt::format("{} does not go with --task {}", option.name(), task_));
    if (context_option_.given() && task_ == "train")
      throw UsageError("--context does not go with --task train");
  }

  void check_context(const ModelConfig& config) const {
    if (context_option_.given() && context_ > config.max_positions())
      throw ValueError(fmt::format("--context {}: the model has {} positions; give at most as many", context_,
                                   config.max_positions()));
  }

  void print(const std::vector<Row>& rows, const Card* card) const {
    Row total;
    std::size_t dispatches = 0;
    bool has_statistics = false;
    fmt::print("{:>10} {:>5} {:>5} {:>5} {:>7} {:>6} {:>7} {:>6} {:>10} {:>9}  kernel\n", "us", "count",
               "regs", "spill", "shared", "occup", "code", "instr", "bytes", "Gflop");
    for (const Row& row : rows) {
      const KernelReport& r = *row.report;
      const KernelStatistics& s = r.statistics;
      has_statistics |= s.registers.has_value() || s.code_bytes.has_value();
      fmt::print("{:>10} {:>5} {:>5} {:>5} {:>7} {:>6} {:>7} {:>6} {:>10} {:>9.2f}  {}{}{} {}{}{}\n",
                 card != nullptr ? fmt::format("{:.1f}", row.seconds * 1e6) : "-", r.dispatches.size(),
                 cell(s.registers), cell(s.spills), cell(s.shared_bytes), cell(s.occupancy),
                 cell(s.code_bytes), cell(s.instructions), format_bytes(row.bytes),
                 static_cast<double>(row.flops) * 1e-9, r.kernel, r.variant.empty() ? "" : " by ", r.variant,
                 r.dims, card != nullptr ? fmt::format(", {}", row.bound) : "",
                 r.error.empty() ? "" : ": FAILED");
      total.bytes += row.bytes;
      total.flops += row.flops;
      total.barriers += row.barriers;
      total.seconds += row.seconds;
      dispatches += r.dispatches.size();
    }
    fmt::print("{} kernels, {} dispatches, {} barriers, {}, {:.2f} Gflop\n", rows.size(), dispatches,
               total.barriers, format_bytes(total.bytes), static_cast<double>(total.flops) * 1e-9);
    if (cache_positions_ > 0) fmt::print("decode: a cache of {} positions\n", cache_positions_);
    if (card != nullptr) fmt::print("{}: about {:.3f} ms\n", card->title, total.seconds * 1e3);
    if (!has_statistics)
      fmt::print("the driver tells nothing of compiled kernels (no feature pipeline-statistics)\n");
  }

  void fail_if_any(const std::vector<KernelReport>& reports) const {
    std::size_t failed = 0;
    for (const KernelReport& report : reports) {
      if (report.error.empty()) continue;
      ++failed;
      note(fmt::format("{}: {}", report.kernel, report.error));
    }
    if (failed > 0)
      throw Error(fmt::format("{} of {} kernels could not be compiled", failed, reports.size()));
  }

  ExplainFlags flags_;
  std::string config_;
  std::string task_;  // empty: all
  std::string card_;
  std::int64_t context_ = 2048;
  std::int64_t cache_positions_ = 0;  // of a token's cache; 0: no task decodes
  std::vector<Option> train_;         // options of that task alone
  Option context_option_;
};

}  // namespace

CommandPtr make_kernels_command() { return std::make_unique<KernelsCommand>(); }

}  // namespace caldera::cli
