// caldera rl: trains agents, and plays with what they learned.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/arguments/command.h"
#include "cli/arguments/domains.h"
#include "cli/arguments/usage_error.h"
#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "training/checkpoints/run_lock.h"
#include "training/rl/envs/registry.h"
#include "training/rl/policy/agent_report.h"
#include "training/rl/policy/log.h"
#include "training/rl/presets.h"

namespace caldera::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAgentFile = "agent.safetensors";
constexpr const char* kPageFile = "report.html";
constexpr const char* kPolicyFile = "policy.safetensors";

class RlCommand : public Command {
 public:
  RlCommand() : Command("rl", "Train an agent in an environment (rl train), or evaluate it (rl evaluate)") {}

 protected:
  void add_options(Arguments& args) override {
    args.option("action", action_, "What to do").one_of({"train", "evaluate"}).required().type_name("ACTION");
    args.option("--env", env_, "The environment's name: CartPole-v1, Pendulum-v1, ...")
        .required()
        .type_name("NAME");
    args.option("--algorithm", algorithm_, "How it learns").one_of(rl::algorithm_names()).show_default();
    args.option("--steps", steps_, "Steps to train, of all environments together")
        .check(integer_in(1))
        .type_name("N")
        .show_default();
    args.option("--seed", seed_, "Of weights, actions and environments").check(seed_value()).type_name("N");
    args.option("--out", out_, "The agent's folder: trained into, or evaluated from")
        .required()
        .type_name("DIR");
    args.flag("--resume", resume_, "Go on with the agent in --out, to the last bit");
    args.option("--environments", environments_, "Environments side by side")
        .check(integer_in(1, 1 << 20))
        .type_name("N");
    args.option("--learning-rate", learning_rate_, "In place of the preset's")
        .check(positive_number())
        .type_name("R");
    args.option("--placement", placement_,
                "Where environments run: on the host, or on the device with the agent")
        .one_of({"host", "device"})
        .show_default();
    args.option("--episodes", episodes_, "Episodes to evaluate")
        .check(integer_in(1))
        .type_name("N")
        .show_default();
    args.option("--save-every", save_every_, "Steps after which the agent is saved; at the end always")
        .check(integer_in(1))
        .type_name("N");
  }

  void run() override {
    if (out_.empty()) throw UsageError("--out is empty; it names the agent's folder");
    check_environment();
    const Device device = open_device();
    action_ == "train" ? train(device) : evaluate(device);
  }

 private:
  void check_environment() const {
    try {
      static_cast<void>(rl::make_environment(env_));
    } catch (const ValueError& error) {
      throw UsageError(error.what());
    }
  }

  void train(Device device) const {
    const std::unique_ptr<rl::Agent> agent =
        rl::make_agent(algorithm_, env_,
                       {.seed = seed_,
                        .device = device,
                        .environments = environments_,
                        .learning_rate = learning_rate_,
                        .placement = placement_ == "device" ? rl::Placement::device : rl::Placement::host});
    const fs::path folder(out_), file = folder / kAgentFile;
    fs::create_directories(folder);
    const RunLock lock(folder);
    if (resume_)
      agent->load(file);
    else if (fs::exists(file))
      throw FileError(fmt::format(
          "{}: there is an agent; add --resume to go on with it, or name another --out", file.string()));
    const std::int64_t first = agent->steps_done();
    if (first >= steps_)
      note(fmt::format("the agent has done {} steps; --steps {} counts them, and there is nothing to train",
                       first, steps_));
    rl::AgentLog log(folder, first);
    std::int64_t saved = first;
    double told = 0, rate = 0;
    const auto save = [&] {
      agent->save(file);
      agent->policy().save(folder / kPolicyFile);
      saved = agent->steps_done();
    };
    agent->train(steps_, [&](const rl::Progress& at) {
      rate = at.steps_per_second;
      log.add(at);
      const double share = static_cast<double>(at.steps) / static_cast<double>(at.total);
      if (share >= told + 0.1 || share >= 1) {
        told = share;
        const std::string learned =
            at.episodes == 0 ? "no episode has ended"
                             : fmt::format("{} episodes, mean return {:.1f}", at.episodes, at.mean_return);
        note(fmt::format("{:>3.0f} %  {} steps, {}, {:.0f} steps/s", 100 * std::min(share, 1.0), at.steps,
                         learned, rate));
      }
      if (save_every_ && at.steps - saved >= *save_every_) save();
      return true;
    });
    save();
    const rl::AgentEvaluation result = rl::evaluate_agent(agent->policy(), *fresh_environments(), episodes_);
    write_page(folder, result);
    report(result, rate);
  }

  void write_page(const fs::path& folder, const rl::AgentEvaluation& result) const {
    rl::AgentReport page = rl::read_agent_log(folder);
    page.title = fmt::format("{} learns {}", algorithm_ == "ppo" ? "PPO" : "SAC", env_);
    page.evaluation = result;
    write_text_file(folder / kPageFile, rl::to_html(page));
  }

  void evaluate(Device device) const {
    const rl::Policy policy = rl::Policy::load(fs::path(out_) / kPolicyFile, device);
    const auto begin = std::chrono::steady_clock::now();
    const rl::AgentEvaluation result = rl::evaluate_agent(policy, *fresh_environments(), episodes_);
    double steps = 0;
    for (const double length : result.lengths) steps += length;
    report(result, steps / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  /// Others than those of training.
  std::unique_ptr<rl::VectorEnvironment> fresh_environments() const {
    return rl::make_vector_environment(env_, std::min<std::int64_t>(episodes_, 16), ~seed_);
  }

  void report(const rl::AgentEvaluation& result, double rate) const {
    if (json())
      return print_json({{"episodes", result.returns.size()},
                         {"mean_return", result.mean_return},
                         {"std_return", result.std_return},
                         {"steps_per_second", rate}});
    fmt::print("{} episodes: mean return {:.2f}, standard deviation {:.2f}\n", result.returns.size(),
               result.mean_return, result.std_return);
  }

  std::string action_, env_, algorithm_ = "ppo", out_, placement_ = "host";
  std::int64_t steps_ = 100'000, episodes_ = 100;
  std::uint64_t seed_ = 0;
  bool resume_ = false;
  std::optional<std::int64_t> environments_, save_every_;
  std::optional<double> learning_rate_;
};

}  // namespace

CommandPtr make_rl_command() { return std::make_unique<RlCommand>(); }

}  // namespace caldera::cli
