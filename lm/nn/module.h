// Module: the base of everything that has named parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "ops/quantized/quantized_tensor.h"

namespace caldera {

class Module;
class Projection;

/// A named parameter of a module. `tensor` points into the module: assigning to it changes the module. It
/// stays valid while the module lives and keeps its structure (apply_lora changes structure).
struct Parameter {
  std::string name;
  LazyTensor* tensor = nullptr;
  bool trainable = true;
};

/// Stores a parameter in a module. An undefined tensor (an absent bias) is no parameter.
struct Weight {
  LazyTensor tensor;
  bool trainable = true;
  /// Set in the tensor's stead where the weight stays as a quantised checkpoint has it: frozen, and not among
  /// parameters(). A module that can use it so reports the weight by ParameterVisitor::matrix.
  QuantizedTensor quantized = {};
  /// Set while an adapter trains the parameter itself (LoRAOptions::modules_to_save): what the model has
  /// without the adapter.
  LazyTensor base = {};

  bool is_quantized() const { return quantized.defined(); }
  const Shape& shape() const { return is_quantized() ? quantized.shape : tensor.shape(); }
  Device device() const { return is_quantized() ? quantized.device() : tensor.device(); }
};

/// Walks a tree of modules. Override what is of interest; the defaults walk on.
class ParameterVisitor {
 public:
  virtual ~ParameterVisitor() = default;
  virtual void parameter(const std::string& name, Weight& weight);
  /// A parameter that the module can also use where it is quantised: a matrix as it is, of several matrices
  /// in one (experts, in, out) the transposes. The default treats it as any parameter.
  virtual void matrix(const std::string& name, Weight& weight);
  /// Overrides call the base to descend into the module.
  virtual void module(const std::string& name, Module& module);
  /// A projection that may be replaced by another one of the same widths: assign to `slot` once the walk is
  /// over. The default treats it as any module.
  virtual void projection(const std::string& name, std::unique_ptr<Projection>& slot);
};

/// Base of everything with parameters. Names are dotted paths, exactly those of Hugging Face checkpoints
/// ("model.layers.0.self_attn.q_proj.weight"). Modules are not copied; one thread at a time uses a module.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Reports the parameters, the child modules and the projections that an adapter may wrap, in a fixed
  /// order, with names that begin with `prefix` (empty for the root): `visitor.parameter(join_name(prefix,
  /// "weight"), …)`, `visitor.module(join_name(prefix, …), …)`, `visitor.projection(…, …)`.
  virtual void visit(const std::string& prefix, ParameterVisitor& visitor) = 0;

  std::vector<Parameter> parameters();
  std::vector<Parameter> trainable_parameters();
  /// Elements in all parameters, quantised ones among them, and in the trainable ones.
  std::int64_t parameter_count();
  std::int64_t trainable_parameter_count();
  /// Whether some weights are kept as a quantised checkpoint has them.
  bool has_quantized_weights();

  /// Makes every parameter that the module has now untrainable.
  void freeze();
  /// Training mode switches dropout on. Initially on. Reaches all child modules.
  void set_training(bool training);
  bool is_training() const { return training_; }
  /// Restarts the random streams of this module and its children (dropout masks) from `seed`: what follows is
  /// a pure function of it. Without it every forward call draws from the next counter of the stream.
  void set_random_seed(std::uint64_t seed);
  /// Evaluates all parameters in one go and makes them leaves of the graph.
  void materialize();

 protected:
  /// Hook of set_random_seed for modules that draw random numbers.
  virtual void reseed(std::uint64_t seed);

 private:
  bool training_ = true;
};

/// A module with one tensor in and one out, called as a function: `layer(x)`.
class Layer : public Module {
 public:
  virtual LazyTensor forward(const LazyTensor& x) = 0;
  LazyTensor operator()(const LazyTensor& x) { return forward(x); }
};

/// A linear map of the last axis, x (..., in) to (..., out): what attention and the feed-forward layers call,
/// with or without an adapter.
class Projection : public Layer {
 public:
  virtual std::int64_t in_features() const = 0;
  virtual std::int64_t out_features() const = 0;
  /// Returns the device of its first weight, quantised or not.
  virtual Device device();
  /// The map as one matrix (out, in), for those who compute a part of it at a time; nothing where it is none
  /// that is kept as floats.
  virtual std::optional<LazyTensor> matrix() { return std::nullopt; }
};

/// Puts a module into evaluation mode for a scope.
class EvaluationMode {
 public:
  explicit EvaluationMode(Module& module) : module_(module), was_training_(module.is_training()) {
    module_.set_training(false);
  }
  ~EvaluationMode() { module_.set_training(was_training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Module& module_;
  bool was_training_;
};

/// "prefix.name", or "name" where the prefix is empty.
std::string join_name(const std::string& prefix, const std::string& name);

/// A seed for stream number `stream` of `seed` (splitmix64, Steele et al. 2014): different streams of one
/// seed, and one stream of different seeds, are unrelated.
std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t stream);

}  // namespace caldera
