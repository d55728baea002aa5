#include "training/objectives/grpo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/runtime/runtime.h"
#include "lm/generate/batch/batch_generator.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/exponential.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/objective_kind.h"
#include "training/objectives/reward_command.h"

namespace caldera {
namespace {

using Tokens = std::vector<std::int32_t>;

/// Prompts and answers as a batch: row i is prompts[i / group] and answers[i], of which the answer counts.
Batch batch_of(const std::vector<Tokens>& prompts, const std::vector<Tokens>& answers, std::int64_t group) {
  Batch batch;
  batch.batch_size = static_cast<std::int64_t>(answers.size());
  std::vector<Tokens> rows;
  std::size_t longest = 2;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    rows.push_back(prompts[i / static_cast<std::size_t>(group)]);
    rows.back().insert(rows.back().end(), answers[i].begin(), answers[i].end());
    longest = std::max(longest, rows.back().size());
  }
  const std::size_t width = (longest - 1 + 15) / 16 * 16;
  batch.seq_len = static_cast<std::int64_t>(width);
  batch.inputs.assign(rows.size() * width, 0);
  batch.targets.assign(rows.size() * width, 0);
  batch.weights.assign(rows.size() * width, 0);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    batch.tokens += static_cast<std::int64_t>(rows[r].size()) - 1;
    const std::size_t prompt = rows[r].size() - answers[r].size();
    for (std::size_t i = 0; i + 1 < rows[r].size(); ++i) {
      batch.inputs[r * width + i] = rows[r][i];
      batch.targets[r * width + i] = rows[r][i + 1];
      batch.weights[r * width + i] = i + 1 >= prompt ? 1.0F : 0.0F;
    }
  }
  return batch;
}

/// Each reward less the mean of its group, over the group's standard deviation (of a sample, as TRL's).
void set_advantages(Drawn& drawn, std::size_t group) {
  constexpr double kEpsilon = 1e-4;
  for (std::size_t begin = 0; begin < drawn.rewards.size(); begin += group) {
    const std::span<const float> own = std::span(drawn.rewards).subspan(begin, group);
    const double mean = std::accumulate(own.begin(), own.end(), 0.0) / static_cast<double>(group);
    double squares = 0;
    for (const float reward : own) squares += (reward - mean) * (reward - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(group - 1));
    for (const float reward : own) {
      drawn.advantages.push_back(static_cast<float>((reward - mean) / (deviation + kEpsilon)));
      drawn.deviations.push_back(static_cast<float>(deviation));
    }
  }
}

class GroupRelative final : public Objective {
 public:
  GroupRelative(RewardFunction reward, const ObjectiveOptions& options)
      : reward_(std::move(reward)),
        group_(static_cast<std::int64_t>(options.more.at("group_size"))),
        length_(static_cast<std::int64_t>(options.more.at("completion_length"))),
        steps_(static_cast<std::int64_t>(options.more.at("steps_per_batch"))),
        temperature_(options.more.at("sampling_temperature")),
        epsilon_(options.more.at("epsilon")),
        kl_(options.more.at("kl_weight")) {}

  std::string_view name() const override { return "grpo"; }
  bool needs_reference() const override { return kl_ > 0; }
  DataNeeds needs() const override { return {.kind = ExampleKind::prompt}; }
  std::int64_t steps_per_batch() const override { return steps_; }
  // The loss has the reward's gradient, not its value: it is about 0 whatever the reward.
  std::string_view best_by() const override { return "reward"; }

  Batch prepare(const ObjectiveModels& models, Batch prompts, std::uint64_t seed) const override {
    if (models.tokenizer() == nullptr)
      throw ValueError("grpo: answers are judged as texts; give the models their tokenizer");
    std::vector<Tokens> beginnings;
    for (std::int64_t row = 0; row < prompts.batch_size; ++row)
      beginnings.push_back(row_tokens(prompts, row));
    const std::vector<Tokens> answers = write(models, beginnings, seed);
    std::vector<Answer> texts;
    for (std::size_t i = 0; i < answers.size(); ++i)
      texts.push_back({.data = prompts.data.at(i / static_cast<std::size_t>(group_)),
                       .text = models.tokenizer()->decode(answers[i])});
    const std::vector<double> rewards = reward_(texts);
    if (rewards.size() != texts.size())
      throw Error(fmt::format("grpo: {} rewards for {} answers", rewards.size(), texts.size()));
    Batch batch = batch_of(beginnings, answers, group_);
    batch.drawn.rewards.assign(rewards.begin(), rewards.end());
    set_advantages(batch.drawn, static_cast<std::size_t>(group_));
    if (steps_ > 1) batch.drawn.log_p = token_log_probabilities(models.policy(), batch).to_vector<float>();
    return batch;
  }

  ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const override {
    CausalLM& model = models.policy();
    const Shape shape{batch.batch_size, batch.seq_len};
    const LazyTensor log_p = token_log_probabilities(model, batch), weights = batch_weights(model, batch);
    const LazyTensor before = batch.drawn.log_p.empty()
                                  ? stop_gradient(log_p)
                                  : LazyTensor::from_vector(batch.drawn.log_p, shape, model.device());
    const LazyTensor advantages = expand_dims(
        LazyTensor::from_vector(batch.drawn.advantages, Shape{batch.batch_size}, model.device()), 1);
    const LazyTensor ratio = exp(log_p - before), bounded = clip(ratio, 1 - epsilon_, 1 + epsilon_);
    LazyTensor losses = -minimum(ratio * advantages, bounded * advantages);
    const LazyTensor clipped = astype(not_equal(ratio, bounded), DType::f32);
    const auto rows = batch.batch_size;
    const auto figure = [&](const std::vector<float>& values) {
      const double total = std::accumulate(values.begin(), values.end(), 0.0);
      return LazyTensor::from_vector(std::vector<float>{static_cast<float>(total)}, Shape{}, model.device());
    };
    std::vector<MetricSum> metrics{{"reward", figure(batch.drawn.rewards), rows},
                                   {"reward_std", figure(batch.drawn.deviations), rows},
                                   {"completion_length", sum(weights), rows},
                                   {"clip_ratio", sum(clipped * weights)}};
    if (kl_ > 0) {  // Schulman 2020, "Approximating KL divergence": unbiased, and never below 0
      const LazyTensor reference =
          models.reference([&](CausalLM& other) { return token_log_probabilities(other, batch); });
      const LazyTensor kl = exp(reference - log_p) - (reference - log_p) - 1;
      losses = losses + kl * kl_;
      metrics.push_back({"kl", sum(kl * weights)});
    }
    return {.loss = sum(losses * weights), .metrics = metrics};
  }

 private:
  /// The answers to all prompts, those of one behind one another, with the token that ended each.
  std::vector<Tokens> write(const ObjectiveModels& models, const std::vector<Tokens>& prompts,
                            std::uint64_t seed) const {
    const EvaluationMode mode(models.policy());
    const auto count = static_cast<std::int64_t>(prompts.size()) * group_;
    BatchGenerator generator(models.policy(),
                             {.max_batch = std::min<std::int64_t>(count, 64), .max_queue = count});
    std::vector<Tokens> answers(static_cast<std::size_t>(count));
    std::string problem;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      GenerateRequest request;
      request.prompt = prompts[i / static_cast<std::size_t>(group_)];
      request.max_tokens = length_;
      request.sampling.temperature = temperature_;
      request.sampling.seed = mix_seed(seed, i);
      if (const auto eos = models.tokenizer()->eos_id()) request.stop_ids = {*eos};
      request.on_event = [&problem, &answer = answers[i]](const TokenEvent& event) {
        if (event.id) answer.push_back(*event.id);
        if (!event.error.empty()) problem = event.error;
        return true;
      };
      generator.submit(std::move(request));
    }
    generator.run();
    if (!problem.empty()) throw Error("grpo: an answer could not be written: " + problem);
    return answers;
  }

  RewardFunction reward_;
  std::int64_t group_;
  std::int64_t length_;
  std::int64_t steps_;
  double temperature_;
  double epsilon_;
  double kl_;
};

}  // namespace

detail::ObjectiveKind grpo_objective() {
  return {
      .name = "grpo",
      .options = {{.name = "reward_command",
                   .help =
                       "Program that reads the row and the completion, a JSON object a line, and writes a "
                       "reward a line",
                   .kind = ObjectiveOption::Kind::text},
                  {.name = "group_size",
                   .help = "Answers to each prompt, which are compared",
                   .otherwise = 8,
                   .low = 2,
                   .whole = true},
                  {.name = "completion_length",
                   .help = "Most tokens of an answer",
                   .otherwise = 64,
                   .low = 1,
                   .whole = true},
                  {.name = "steps_per_batch",
                   .help = "Steps with the same answers",
                   .otherwise = 1,
                   .low = 1,
                   .whole = true},
                  {.name = "sampling_temperature",
                   .help = "Temperature that answers are drawn with",
                   .otherwise = 1,
                   .low_is_out = true},
                  {.name = "epsilon",
                   .help = "How far a token's probability may move in the steps with the same answers",
                   .otherwise = 0.2,
                   .high = 1,
                   .low_is_out = true},
                  {.name = "kl_weight", .help = "Weight of the divergence from the reference"}},
      .make = [](const ObjectiveOptions& options) -> std::unique_ptr<Objective> {
        const std::string& command = options.words.at("reward_command");
        if (command.empty()) throw ValueError("grpo: give a reward_command, the program that judges answers");
        // Started when it is needed first: making an objective checks options, too.
        const auto judge = [command, running = std::make_shared<std::unique_ptr<RewardCommand>>()](
                               std::span<const Answer> answers) {
          if (*running == nullptr) *running = std::make_unique<RewardCommand>(command);
          return (*running)->judge(answers);
        };
        return std::make_unique<GroupRelative>(judge, options);
      }};
}

std::unique_ptr<Objective> make_grpo(RewardFunction reward, const ObjectiveOptions& options) {
  return std::make_unique<GroupRelative>(std::move(reward),
                                         detail::completed_options(grpo_objective(), options));
}

}  // namespace caldera
