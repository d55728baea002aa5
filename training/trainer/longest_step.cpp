#include "training/trainer/longest_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "engine/distributed/fixed_tree.h"
#include "engine/runtime/inspect/memory_forecast.h"
#include "engine/runtime/runtime.h"

namespace caldera::detail {
namespace {

std::uint64_t bytes_of(const LazyTensor& x) {
  return static_cast<std::uint64_t>(x.numel()) * size_of(x.dtype());
}

}  // namespace

LongestStep::LongestStep(const ObjectiveModels& models, const Objective& objective, const TrainingSet& data,
                         std::span<const Batch> validation, const TrainOptions& options,
                         const StepParts& parts)
    : models_(models),
      objective_(objective),
      validation_(validation),
      options_(options),
      parts_(parts),
      batch_(data.longest_batch(options.batch_size, options.packing)) {}

MemoryChoice LongestStep::choose() const {
  return choose_checkpointing(models_.policy(), evaluations(), options_.checkpointing, bounds());
}

std::vector<MemoryRow> LongestStep::compare(std::span<const double> shares, std::uint64_t own_limit) const {
  MemoryBounds of_device = bounds();
  of_device.own = bytes_of_nothing(models_.policy().device());
  return compare_limits(models_.policy(), evaluations(), of_device, shares, own_limit);
}

bool LongestStep::will_have_averages() const { return parts_.average_is_new && options_.iterations > 1; }

std::vector<StepGraph> LongestStep::evaluations() const {
  const std::int64_t batches = parts_.ranks != nullptr
                                   ? parts_.ranks->batches().second - parts_.ranks->batches().first
                                   : options_.grad_accumulation;
  const bool averages = will_have_averages();
  std::vector<StepGraph> all;
  const auto add = [&](const Place& place) { all.emplace_back([this, place] { return evaluation(place); }); };
  if (batches == 1 && options_.try_longest) add({.is_last = false});
  // Each kind of batch that there is in a step, by what waits for it (fixed_tree.h).
  std::set<std::tuple<bool, int, int>> kinds;
  for (std::int64_t batch = 0, sums = 0; batch < batches; ++batch) {
    const int due = distributed::sums_due(batch, batches);
    kinds.emplace(batch + 1 == batches, static_cast<int>(sums), due);
    sums += 1 - due;
  }
  for (const auto& [is_last, sums, due] : kinds) {
    if (averages || !is_last) add({.is_last = is_last, .sums = sums, .due = due, .has_averages = averages});
    if (is_last) add({.sums = sums, .due = due});
  }
  return all;
}

void LongestStep::try_gradients() const {
  try {
    eval(evaluation({.is_last = false}).outputs);
  } catch (const OutOfMemoryError& error) {
    const bool may_checkpoint = options_.checkpointing == Checkpointing::none;
    throw OutOfMemoryError(fmt::format(
        "the longest batch, {} rows of {} tokens, does not fit; {}lower the batch size or the sequence "
        "length (gradient accumulation makes up for the first): {}",
        batch_.batch_size, batch_.seq_len, may_checkpoint ? "checkpoint the layers, or " : "", error.what()));
  }
}

StepEvaluation LongestStep::evaluation(const Place& place) const {
  const StepRestored restored(parts_);
  StepEvaluation evaluation;
  const auto await = [&](const LazyTensor& x) {
    evaluation.awaited_bytes += bytes_of(x);
    return stand_in_for(x);
  };
  if (place.has_averages) {
    std::map<std::string, LazyTensor> averages = parts_.average->state();
    for (auto& [name, average] : averages) average = await(average);
    parts_.average->restore(averages);
  }
  GradientSums grads(static_cast<std::size_t>(place.sums));
  for (std::vector<LazyTensor>& sum : grads)
    for (const LazyTensor& x : parts_.optimizer.inputs()) sum.push_back(await(x));
  ObjectiveSums of_batch = objective_.sums(models_, batch_);
  evaluation.outputs = batch_outputs(parts_, of_batch, grads, options_,
                                     {.count = std::max<std::int64_t>(1, objective_.count(batch_)),
                                      .is_last = place.is_last,
                                      .sums_due = place.due,
                                      .learning_rate = options_.optimizer.learning_rate.value_or(0)});
  return evaluation;
}

MemoryBounds LongestStep::bounds() const {
  const Device device = models_.policy().device();
  MemoryBounds bounds{.limit = options_.planned_limit > 0 ? options_.planned_limit
                                                          : device_counters(device).limit_bytes};
  // Also without a limit: idle memory would count as held, and is used before any other.
  const std::uint64_t own = bytes_of_nothing(device);
  if (bounds.limit > 0) bounds.own = own;
  count_validation(bounds);
  return bounds;
}

void LongestStep::count_validation(MemoryBounds& bounds) const {
  const auto longest = std::ranges::max_element(validation_, {}, &Batch::seq_len);
  if (longest == validation_.end() || longest->seq_len <= batch_.seq_len) return;
  const EvaluationMode mode(models_.policy());
  const ObjectiveSums sums = objective_.sums(models_, *longest);
  std::vector<LazyTensor> outputs{sums.loss};
  for (const MetricSum& metric : sums.metrics) outputs.push_back(metric.sum);
  bounds.besides = forecast_memory(outputs);
  if (will_have_averages())
    for (const LazyTensor& average : parts_.average->outputs())
      bounds.besides.held_bytes += bytes_of(average);
}

}  // namespace caldera::detail
