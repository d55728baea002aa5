#include "training/trainer/longest_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/autodiff/autodiff.h"
#include "engine/runtime/runtime.h"
#include "ops/core/cast.h"
#include "ops/shape/joining.h"

namespace caldera::detail {

LongestStep::LongestStep(const ObjectiveModels& models, const Objective& objective, const TrainingSet& data,
                         const TrainOptions& options, const StepParts& parts)
    : models_(models),
      objective_(objective),
      options_(options),
      parts_(parts),
      batch_(data.longest_batch(options.batch_size, options.packing)) {}

MemoryChoice LongestStep::choose() const {
  const std::array<StepGraph, 2> step{[&] { return gradients(); }, [&] { return whole_step(); }};
  return choose_checkpointing(models_.policy(), step, options_.checkpointing, bounds());
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
  constexpr std::uint64_t kEndless = std::uint64_t{1} << 62;
  const Device device = models_.policy().device();
  const std::uint64_t of_device = device_counters(device).limit_bytes;
  MemoryBounds bounds{.limit = options_.planned_limit > 0 ? options_.planned_limit : of_device};
  if (options_.grad_accumulation > 1) {  // their sums wait from batch to batch
    for (const LazyTensor& x : parts_.optimizer.inputs())
      bounds.further += static_cast<std::uint64_t>(x.numel()) * size_of(x.dtype());
  }
  if (bounds.limit == 0) return bounds;
  set_memory_limit(device, of_device > 0 ? of_device : kEndless);  // gives back what nothing is in
  const DeviceCounters now = device_counters(device);
  bounds.own = now.reserved_bytes - now.live_bytes;
  if (of_device == 0) set_memory_limit(device, 0);
  return bounds;
}

}  // namespace caldera::detail
