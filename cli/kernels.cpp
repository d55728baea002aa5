// caldera kernels: what the driver makes of a task's kernels, compiled and not run.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/arguments/domains.h"
#include "cli/choose_device.h"
#include "cli/command.h"
#include "cli/explain_tasks.h"
#include "cli/model_flags.h"
#include "engine/explain/explanation.h"
#include "engine/runtime/survey.h"

namespace caldera::cli {
namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

class KernelsCommand : public Command {
 public:
  KernelsCommand() : Command("kernels", "Compile the kernels of a task, run nothing, and show what the driver made") {}

 protected:
  void add_options(Arguments& args) override {
    args.option("--model", flags_.model, "Folder with the model's config.json; weights are not read").type_name("DIR");
    args.option("--config", flags_.config, "The model's config.json itself").type_name("FILE.json");
    args.option("--task", task_, "T").one_of({"forward", "decode", "train"}).type_name("T");
    args.option("--dtype", flags_.training.dtype, "f32, f16 or bf16").one_of({"f32", "f16", "bf16"}).show_default();
    args.option("--batch-size", flags_.training.options.batch_size, "train").check(integer_in(1)).show_default();
    args.option("--seq-len", flags_.training.seq_len, "train").check(integer_in(1));
    args.option("--context", context_, "decode").check(integer_in(1)).show_default();
    declare_lora(args, flags_.lora, flags_.targets);
    args.option("--card", card_, "");
  }

  void run() override {
    if (flags_.config.empty()) flags_.config = std::filesystem::path(flags_.model) / "config.json";
    if (!flags_.training.seq_len) flags_.training.seq_len = 512;
    flags_.prompt_tokens = std::max<std::int64_t>(1, context_ - 64);
    const Device device = open_survey();
    const SteadyRun steady = task_ == "forward"  ? explain_forward(flags_, device)
                             : task_ == "decode" ? explain_decode(flags_, device)
                                                 : explain_train(flags_, device);
    std::vector<std::shared_ptr<const Plan>> plans;
    for (const auto& run : steady.runs) plans.push_back(run->plan);
    const std::vector<KernelReport> reports = survey_kernels(device, plans);
    Json list = Json::array();
    for (const KernelReport& r : reports) {
      std::int64_t bytes = 0, flops = 0;
      for (const DispatchFacts& d : r.dispatches) {
        bytes += d.bytes;
        flops += d.flops;
      }
      Json own = Json::object();
      for (const NamedStatistic& s : r.statistics.others) own[s.name] = s.value;
      list.push_back({{"kernel", r.kernel},
                      {"family", r.family},
                      {"variant", r.variant},
                      {"dims", r.dims},
                      {"dispatches", r.dispatches.size()},
                      {"registers", number(r.statistics.registers)},
                      {"matrices", r.uses_matrices},
                      {"workgroup_size", r.workgroup_size},
                      {"bytes", bytes},
                      {"flops", flops},
                      {"error", r.error},
                      {"statistics", own}});
    }
    print_json(list);
  }

 private:
  ExplainFlags flags_;
  std::string task_;
  std::string card_;
  std::int64_t context_ = 2048;
};

}  // namespace

CommandPtr make_kernels_command() { return std::make_unique<KernelsCommand>(); }

}  // namespace caldera::cli
