#include "training/trainer/longest_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/autodiff/autodiff.h"
#include "engine/runtime/inspect/memory_forecast.h"
#include "engine/runtime/runtime.h"
#include "ops/core/cast.h"
#include "ops/shape/joining.h"

namespace caldera::detail {

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

std::vector<StepGraph> LongestStep::evaluations() const {
  std::vector<StepGraph> step;
  if (options_.try_longest || options_.grad_accumulation > 1) step.emplace_back([&] { return gradients(); });
  step.emplace_back([&] { return whole_step(); });
  return step;
}

void LongestStep::try_gradients() const {
  try {
    eval(gradients());
  } catch (const OutOfMemoryError& error) {
    const bool may_checkpoint = options_.checkpointing == Checkpointing::none;
    throw OutOfMemoryError(fmt::format(
        "the longest batch, {} rows of {} tokens, does not fit; {}lower the batch size or the sequence "
        "length (gradient accumulation makes up for the first): {}",
        batch_.batch_size, batch_.seq_len, may_checkpoint ? "checkpoint the layers, or " : "", error.what()));
  }
}

std::vector<LazyTensor> LongestStep::gradients() const {
  const ObjectiveSums sums = objective_.sums(models_, batch_);
  const LazyTensor loss = parts_.scaler != nullptr ? parts_.scaler->scaled(sums.loss) : sums.loss;
  std::vector<LazyTensor> outputs = grad(loss, parts_.optimizer.inputs());
  outputs.push_back(sums.loss);
  return outputs;
}

std::vector<LazyTensor> LongestStep::whole_step() const {
  const StepRestored restored(parts_);
  std::vector<LazyTensor> grads = gradients();
  const LazyTensor loss = grads.back();
  grads.pop_back();
  StepUpdate update = update_parts(parts_, grads, options_, options_.optimizer.learning_rate.value_or(0));
  update.outputs.push_back(stack({astype(loss, DType::f32), astype(update.norm, DType::f32)}, 0));
  return update.outputs;
}

MemoryBounds LongestStep::bounds() const {
  const Device device = models_.policy().device();
  MemoryBounds bounds{.limit = options_.planned_limit > 0 ? options_.planned_limit
                                                          : device_counters(device).limit_bytes};
  std::uint64_t trained = 0;
  for (const LazyTensor& x : parts_.optimizer.inputs())
    trained += static_cast<std::uint64_t>(x.numel()) * size_of(x.dtype());
  if (options_.grad_accumulation > 1) bounds.further += trained;  // sums wait from batch to batch
  // It is the parameters until the first step, and memory of its own from then on.
  if (parts_.average_is_new) bounds.further += trained;
  if (bounds.limit > 0) bounds.own = bytes_of_nothing(device);
  bounds.least_peak = peak_of_validation();
  return bounds;
}

std::uint64_t LongestStep::peak_of_validation() const {
  const auto longest = std::ranges::max_element(validation_, {}, &Batch::seq_len);
  if (longest == validation_.end() || longest->seq_len <= batch_.seq_len) return 0;
  const EvaluationMode mode(models_.policy());
  const ObjectiveSums sums = objective_.sums(models_, *longest);
  std::vector<LazyTensor> outputs{sums.loss};
  for (const MetricSum& metric : sums.metrics) outputs.push_back(metric.sum);
  return forecast_memory(outputs).peak_bytes();
}

}  // namespace caldera::detail
