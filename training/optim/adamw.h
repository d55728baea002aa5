// AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019), with the numerics of
// torch.optim.AdamW.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "training/nn/module.h"

namespace caldera {

struct AdamWOptions {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  /// Throws ValueError naming the field that is out of its domain.
  void validate() const;
};

/// Lazy AdamW over a fixed list of parameters, by the formula of adamw_update (ops/nn/optimizer_updates.h).
/// The moments of 16-bit parameters are f32. A training step is
///
///   auto grads = grad(loss, optimizer.inputs());
///   optimizer.step(grads, lr);                 // builds nodes, computes nothing
///   outputs = optimizer.state(); outputs.push_back(loss); eval(outputs);
///   optimizer.detach();                        // the next step starts from leaves
///
/// The step's factors are plan arguments: from the second step on the plan is in the cache.
class AdamW {
 public:
  /// Keeps the pointers of `parameters`. Throws ValueError for bad options or an empty list, DTypeError for a
  /// parameter that is not floating.
  explicit AdamW(std::vector<Parameter> parameters, const AdamWOptions& options = {});

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const AdamWOptions& options() const { return options_; }
  /// The parameters' present tensors: what to differentiate with respect to.
  std::vector<LazyTensor> inputs() const;

  /// Replaces the parameters and moments by their updated values. Throws ShapeError unless there is one
  /// gradient of the parameter's shape for each.
  void step(std::span<const LazyTensor> grads, double learning_rate);
  void step(std::span<const LazyTensor> grads) { step(grads, options_.learning_rate); }
  /// The same where `apply` (a boolean scalar) will turn out true; otherwise parameters and moments keep
  /// their values, and the caller takes the step back by `skip_step()` once it knows.
  void step_if(const LazyTensor& apply, std::span<const LazyTensor> grads, double learning_rate);
  void skip_step() { --step_; }

  /// Parameters, then first moments, then second moments: what must be evaluated with the loss in one eval.
  std::vector<LazyTensor> state() const;
  /// After that eval: replaces parameters and moments by leaves with the same values.
  void detach();

  std::int64_t step_count() const { return step_; }
  const std::vector<LazyTensor>& first_moments() const { return first_; }
  const std::vector<LazyTensor>& second_moments() const { return second_; }
  /// Continues a saved run. Throws ShapeError when a moment does not have its parameter's shape.
  void restore(std::int64_t step, std::vector<LazyTensor> first, std::vector<LazyTensor> second);
  /// Back to step 0 and zero moments.
  void reset();

 private:
  AdamWOptions options_;
  std::vector<Parameter> parameters_;
  std::vector<LazyTensor> first_;
  std::vector<LazyTensor> second_;
  std::int64_t step_ = 0;
};

}  // namespace caldera
