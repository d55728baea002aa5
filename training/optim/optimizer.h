// Optimizer: updates parameters by their gradients.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lm/nn/module.h"
#include "training/optim/parameter_group.h"

namespace caldera {

/// Holds the state of an optimiser between steps, without the parameters: a checkpoint saves it. A tensor's
/// name is its parameter's and PyTorch's name of the state: "model.norm.weight.exp_avg".
struct OptimizerState {
  std::int64_t step = 0;
  std::map<std::string, LazyTensor> tensors;
};

/// A lazy optimiser over a fixed list of parameters. A training step is
///
///   const LazyTensor loss = ...;
///   auto grads = grad(loss, optimizer.parameters());
///   optimizer.update(grads);                   // builds nodes, computes nothing
///   eval(loss, optimizer);                     // one plan: the loss, the new parameters and the new state
///
/// What changes from step to step (the learning rate, bias corrections) enters the plan as arguments: from
/// the second step on the plan is in the cache. State of 16-bit parameters is f32. One thread at a time.
///
/// An optimiser derives from it and says what one parameter becomes; see docs/guide/training.md.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Returns the parameters' present tensors: differentiate with respect to them.
  std::vector<LazyTensor> inputs() const;
  /// Returns the rate that update() uses when none is given.
  double learning_rate() const { return learning_rate_; }

  /// Gives some parameters rates and weight decays of their own: a parameter belongs to the first group whose
  /// pattern is found in its name. Throws ValueError for a pattern that is no regular expression or is found
  /// in no parameter's name, nor among `others`, which another optimiser has, and numbers that are negative
  /// or not finite; nothing is changed then.
  void set_groups(const std::vector<ParameterGroup>& groups, std::span<const Parameter> others = {});

  /// Replaces the parameters and the state by their updated values. Throws ShapeError unless there is one
  /// gradient of the parameter's shape for each, ValueError for an empty gradient (PyTorch skips a parameter
  /// whose grad is None) and for a rate that is negative or not finite; nothing is changed then.
  void update(std::span<const LazyTensor> grads, double learning_rate);
  void update(std::span<const LazyTensor> grads) { update(grads, learning_rate_); }
  /// Takes the gradients in braces: update({weight_grad, bias_grad}).
  void update(std::initializer_list<LazyTensor> grads, double learning_rate) {
    update(std::span(grads.begin(), grads.size()), learning_rate);
  }
  void update(std::initializer_list<LazyTensor> grads) { update(grads, learning_rate_); }
  /// Updates if `apply` (a boolean of rank 0, evaluated with the rest) is true; otherwise parameters and
  /// state keep their values, and the caller calls `skip_update()` once it knows. Throws what update()
  /// throws, and ValueError, DTypeError or ShapeError for an `apply` that is empty, not boolean or not of
  /// rank 0; nothing is changed then.
  void update_if(const LazyTensor& apply, std::span<const LazyTensor> grads, double learning_rate);
  void update_if(const LazyTensor& apply, std::initializer_list<LazyTensor> grads, double learning_rate) {
    update_if(apply, std::span(grads.begin(), grads.size()), learning_rate);
  }
  /// Takes the last update out of the count. Throws ValueError where there is none.
  void skip_update();

  /// Returns the parameters, then the state: evaluate them with the loss, in one eval.
  std::vector<LazyTensor> outputs() const;
  /// Counts the updates so far.
  std::int64_t step_count() const { return step_; }
  OptimizerState state() const;
  /// Continues a saved run. Throws ValueError for a tensor that is missing, empty or unexpected and for a
  /// step outside of [0, 2^53], ShapeError, DTypeError or DeviceError for a tensor of another shape, type or
  /// device than that of state(); nothing is changed then.
  void restore(const OptimizerState& state);
  /// Back to step 0 and a state of zeros.
  void reset();

 protected:
  /// A tensor that is kept for a parameter, zero at first.
  struct Slot {
    std::string name;
    Shape shape;
    DType dtype = DType::f32;
  };
  /// Says what is kept for a parameter.
  using Slots = std::function<std::vector<Slot>(const LazyTensor& parameter)>;

  /// `name` begins messages. Keeps the pointers of `parameters`. Throws ValueError for an empty list, a
  /// parameter without a tensor, a name or a tensor that is listed twice and a rate that is negative or not
  /// finite, DTypeError for a parameter that is not floating.
  Optimizer(std::string name, std::vector<Parameter> parameters, const Slots& slots, double learning_rate,
            double weight_decay);
  /// Keeps tensors of these names for each parameter, all of its shape, and f32 unless the parameter is f64.
  Optimizer(std::string name, std::vector<Parameter> parameters, const std::vector<std::string>& slots,
            double learning_rate, double weight_decay);
  /// Makes slots of these names, all of the parameter's shape, and f32 unless the parameter is f64.
  static std::vector<Slot> slots_like(const LazyTensor& parameter, const std::vector<std::string>& names);

  /// One parameter's update. All tensors have the dtype that the update is computed in.
  struct Step {
    LazyTensor parameter;
    LazyTensor grad;
    std::vector<LazyTensor> slots;
  };
  struct Updated {
    LazyTensor parameter;
    std::vector<LazyTensor> slots;
  };
  virtual Updated updated(const Step& step) const = 0;
  /// The numbers of an update.
  struct Numbers {
    double learning_rate = 0;
    double weight_decay = 0;
    std::int64_t step = 1;  ///< counts from 1
  };
  /// Called once an update and group of parameters, before updated() is for each of them: makes what they
  /// share. A number is a node of the graph like any other.
  virtual void prepare([[maybe_unused]] const Numbers& numbers) {}

 private:
  void check_parameters() const;
  void check_grads(std::span<const LazyTensor> grads) const;
  /// Returns what update() would put into the parameters and the state. Changes neither.
  std::vector<Updated> next(std::span<const LazyTensor> grads, double learning_rate);
  void commit(std::vector<Updated> results);

  std::string name_;
  std::vector<Parameter> parameters_;
  // Numbers of the groups, the first for parameters of no other, and the group of each parameter.
  std::vector<ParameterGroup> groups_;
  std::vector<std::size_t> group_of_;
  std::vector<std::vector<Slot>> slot_kinds_;   // of each parameter
  std::vector<std::vector<LazyTensor>> slots_;  // likewise
  double learning_rate_;
  double weight_decay_;
  std::int64_t step_ = 0;
};

/// Evaluates the loss and the optimiser's new parameters and state in one plan, and detaches them.
void eval(const LazyTensor& loss, Optimizer& optimizer);
/// Evaluates several results that way: a loss and a norm, say.
void eval(std::span<const LazyTensor> results, Optimizer& optimizer);
void eval(std::initializer_list<LazyTensor> results, Optimizer& optimizer);

/// Returns the gradients of a scalar with respect to parameters, in their order, as update() takes them.
std::vector<LazyTensor> grad(const LazyTensor& loss, const std::vector<Parameter>& parameters);

}  // namespace caldera
