#include "training/trainer/step_figures.h"

#include <fmt/format.h>

#include <utility>

#include "training/trainer/seeds.h"

namespace caldera::detail {

void StepFigures::add(double loss, std::span<const double> values, const std::vector<MetricSum>& metrics) {
  figures_.push_back(loss);
  figures_.insert(figures_.end(), values.begin(), values.end());
  names_.clear();
  for (const MetricSum& metric : metrics)
    names_.push_back({.name = metric.name, .sum = {}, .count = metric.count});
}

StepRequests StepFigures::finish(StepRecord& record, const RankShare& ranks, StepRequests own, double busy,
                                 const std::function<std::int64_t(std::size_t batch)>& count) const {
  constexpr std::size_t kOfRank = 3;
  std::vector<double> given{own.stop ? 1.0 : 0.0, own.save ? 1.0 : 0.0, busy};
  given.insert(given.end(), figures_.begin(), figures_.end());
  const std::size_t width = 1 + names_.size();
  StepRequests any;
  MetricTotals totals;
  std::size_t batch = 0;
  double longest = -1;
  int rank = 0;
  for (const std::vector<double>& figures : ranks.gather(given)) {
    any.stop = any.stop || figures[0] != 0;
    any.save = any.save || figures[1] != 0;
    if (figures[2] > longest && !ranks.is_alone()) {
      longest = figures[2];
      record.slowest = ranks.name_of(rank);
    }
    ++rank;
    for (std::size_t at = kOfRank; at + width <= figures.size(); at += width) {
      record.loss += figures[at];
      totals.add(names_, std::span(figures).subspan(at + 1, width - 1), count(batch++));
    }
  }
  record.metrics = totals.means();
  return any;
}

std::uint64_t dropout_seed(std::uint64_t seed, std::int64_t step, std::int64_t batch) {
  const std::uint64_t of_step = mix_seed(mix_seed(seed, kDropoutStream), static_cast<std::uint64_t>(step));
  return batch == 0 ? of_step : mix_seed(of_step, static_cast<std::uint64_t>(batch));
}

void require_same_run(const RankShare& ranks, const ObjectiveModels& models, const Objective& objective,
                      const TrainingSet& data, const TrainOptions& options, const std::string& more) {
  if (ranks.is_alone()) return;
  const SharingOptions& sharing = options.sharing;
  const std::pair<std::string, std::string> facts[] = {
      {"objective", std::string(objective.name())},
      {"training set", data.fingerprint()},
      {"model", fingerprint_of(models.policy())},
      {"set of options",
       fmt::format("{} steps of {} batches of {}, packing {}, schedule {}, {} at {}, clip {} {}, seed {}, "
                   "average {}, validation every {}, shared by {} {} {}, outer step every {} by {} {}, "
                   "gradients in {}, share {}",
                   options.iterations, options.grad_accumulation, options.batch_size,
                   static_cast<int>(options.packing), static_cast<int>(options.schedule),
                   options.optimizer.name, options.optimizer.learning_rate.value_or(0), options.max_grad_norm,
                   options.max_grad_value, options.seed, options.ema_decay, options.val_every,
                   sharing.fast_reduction, sharing.shard_optimizer, sharing.base_is_sharded,
                   sharing.sync_every, sharing.outer_learning_rate, sharing.outer_momentum,
                   name(sharing.gradient_type), sharing.top_share)},
      {"run", more + " batches of validation"}};
  ranks.require_same(facts);
}

}  // namespace caldera::detail
