// AdamW for eager programs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "eager/tensor.h"
#include "eager/var.h"

namespace caldera::v1 {

struct AdamWConfig {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;

  /// learning_rate >= 0, betas in [0, 1), eps > 0, weight_decay >= 0. Throws TrainingError (InvalidConfig).
  void validate() const;
};

/// AdamW with decoupled weight decay; the formula is that of ops/nn/optimizer_updates.h. A parameter's
/// moments and its step number belong together: bias correction counts the updates of that parameter, however
/// many others share the optimiser. Not to be used by two threads at once.
class AdamW {
 public:
  /// Throws TrainingError (InvalidConfig).
  explicit AdamW(const AdamWConfig& config = {});

  /// Registers a parameter by name, with zero moments. Throws TrainingError (State) when the name is taken.
  void add_parameter(const std::string& name, const Tensor& param);
  /// The parameter after one step. Throws TrainingError (State) for a name that was not added, ShapeError
  /// when the shapes of parameter, gradient and moments differ.
  Tensor step(const std::string& name, const Tensor& param, const Tensor& grad);
  /// One step of a variable, in place. Variables need not be added before.
  void step_var(const Var& variable, const Tensor& grad);
  /// One step of several variables, in place, in one evaluation. Throws TrainingError (Gradient) unless there
  /// is one gradient a variable. Whatever is thrown, no variable has changed.
  void step(std::span<const Var> variables, std::span<const Tensor> grads);

  /// Sets the rate of the steps to come. Throws TrainingError (InvalidConfig) when negative or not finite.
  void set_lr(double learning_rate);
  double learning_rate() const { return config_.learning_rate; }
  const AdamWConfig& config() const { return config_; }
  /// Number of steps so far: updates of the parameter that was updated most.
  std::int64_t step_count() const { return step_count_; }
  /// Forgets moments and step numbers; the parameters stay registered.
  void reset_state();

  /// The running means of a variable's gradients and of their squares, and how often it was updated.
  struct Moments {
    Tensor m;
    Tensor v;
    std::int64_t step = 0;
  };
  /// Nothing for a variable that has not been updated.
  std::optional<Moments> moments(const Var& variable) const;
  /// Goes on with a variable as from there. Throws ShapeError unless the moments have its shape.
  void restore(const Var& variable, const Moments& moments);
  /// Zeros of the shape and dtype that a parameter's moments have.
  static Tensor zero_moment(const Tensor& param);

 private:
  using State = Moments;
  static State fresh_state(const Tensor& param);

  AdamWConfig config_;
  std::int64_t step_count_ = 0;
  std::map<std::string, State> named_;
  /// Keyed by the variable itself, which the key keeps alive: a new variable never inherits another's
  /// moments.
  std::map<Var, State> variables_;
};

}  // namespace caldera::v1
