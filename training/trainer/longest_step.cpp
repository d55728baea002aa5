#include "training/trainer/longest_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/autodiff/autodiff.h"
#include "engine/runtime/runtime.h"
#include "ops/core/cast.h"
#include "ops/shape/joining.h"
#include "training/optim/clip.h"

namespace caldera::detail {
namespace {

/// Rows of the dataset's longest example; with packing the same, packed.
Batch longest_batch(const TokenDataset& data, std::int64_t batch_size, Packing packing) {
  const auto length = [&](std::int64_t i) {
    std::size_t longest = 0;
    for (std::int64_t which = 0; which < data.sequences_per_example(); ++which)
      longest = std::max(longest, data.tokens(i, which).size());
    return longest;
  };
  std::int64_t longest = 0;
  for (std::int64_t i = 1; i < data.size(); ++i)
    if (length(i) > length(longest)) longest = i;
  const auto rows = static_cast<std::size_t>(batch_size);
  return packing == Packing::none
             ? data.batch(std::vector<std::int64_t>(rows, longest))
             : data.packed_batch(std::vector<std::vector<std::int64_t>>(rows, {longest}));
}

}  // namespace

LongestStep::LongestStep(const ObjectiveModels& models, const Objective& objective, const TokenDataset& data,
                         const TrainOptions& options, Optimizer& optimizer)
    : models_(models),
      objective_(objective),
      options_(options),
      optimizer_(optimizer),
      batch_(longest_batch(data, options.batch_size, options.packing)) {}

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
  std::vector<LazyTensor> outputs = grad(sums.loss, optimizer_.inputs());
  outputs.push_back(sums.loss);
  return outputs;
}

std::vector<LazyTensor> LongestStep::whole_step() const {
  const std::vector<LazyTensor> parameters = optimizer_.inputs();
  const OptimizerState state = optimizer_.state();
  std::vector<LazyTensor> grads = gradients();
  const LazyTensor loss = grads.back();
  grads.pop_back();
  const LazyTensor norm =
      options_.max_grad_norm > 0 ? clip_grad_norm(grads, options_.max_grad_norm) : global_norm(grads);
  optimizer_.update(grads);
  std::vector<LazyTensor> outputs = optimizer_.outputs();
  outputs.push_back(stack({astype(loss, DType::f32), astype(norm, DType::f32)}, 0));
  for (std::size_t i = 0; i < parameters.size(); ++i) *optimizer_.parameters()[i].tensor = parameters[i];
  optimizer_.restore(state);
  return outputs;
}

MemoryBounds LongestStep::bounds() const {
  const Device device = models_.policy().device();
  MemoryBounds bounds{.limit = device_counters(device).limit_bytes};
  if (options_.grad_accumulation > 1) {  // their sums wait from batch to batch
    for (const LazyTensor& x : optimizer_.inputs())
      bounds.further += static_cast<std::uint64_t>(x.numel()) * size_of(x.dtype());
  }
  if (bounds.limit == 0) return bounds;
  set_memory_limit(device, bounds.limit);  // gives back what nothing is in
  const DeviceCounters now = device_counters(device);
  bounds.own = now.reserved_bytes - now.live_bytes;
  return bounds;
}

}  // namespace caldera::detail
