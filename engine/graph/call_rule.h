// CallRule: the contract between the transforms and calls. A call is a part of a graph that is differentiated
// and mapped as a whole, by a rule of its own (custom_vjp, checkpoint).
//
// It is a node of OpClass::call, without a value, that carries its rule. Its inputs are the arguments, then
// the values that were computed from them. Callers hold results: a result names one value and has the call as
// its second input. The transforms' walks come to the call through results; evaluation's walk follows
// operands and never does. So a call lives exactly as long as a result can be differentiated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A call as its rule sees it.
struct Call {
  LazyTensor node;
  std::span<const LazyTensor> arguments;
  std::span<const LazyTensor> values;
};

/// Tensors of the graph and what is to be added to their cotangents.
using Cotangents = std::vector<std::pair<LazyTensor, LazyTensor>>;

/// Stands for a value of the graph of a function under vmap in the graph of all examples. If it is mapped,
/// axis 0 is the mapped axis, and the axes of one example follow.
struct Batched {
  LazyTensor value;
  bool is_mapped = false;
};

/// Tells whether the cotangent of a tensor of the graph is wanted: it depends on an input of the transform.
using IsWanted = std::function<bool(const LazyTensor&)>;

/// Says how a call is differentiated and mapped. Constant and shared by calls: its functions may be called
/// from any thread, and not while the caller holds graph_mutex().
class CallRule {
 public:
  CallRule() = default;
  CallRule(const CallRule&) = delete;
  CallRule& operator=(const CallRule&) = delete;
  virtual ~CallRule() = default;

  /// Names it in graphs and messages: "checkpoint".
  virtual std::string title() const = 0;

  /// Returns what the call sends back for the cotangents of its values (empty where zero). Tensors that are
  /// not wanted may be among them. Errors begin with the rule's title, or with the name of `transform`, which
  /// is the one that the user called.
  virtual Cotangents pull_back(const Call& call, std::span<const LazyTensor> cotangents,
                               const IsWanted& is_wanted, std::string_view transform) const = 0;

  /// Returns the tangents of the results (empty where zero). `tangents` are those of the arguments, followed
  /// by those that the values have by the operations that computed them. Throws as pull_back does.
  virtual std::vector<LazyTensor> push_forward(const Call& call, std::span<const LazyTensor> tangents,
                                               std::string_view transform) const = 0;

  /// Returns the results of the call of `examples` examples under vmap, of rules that map the call as a
  /// whole. None (as here): the operations that computed the values are mapped, and mapped() is the rule of
  /// what they give. Calls whose values are of OpClass::control must be mapped as a whole.
  virtual std::vector<Batched> mapped_results(std::span<const Batched> /*arguments*/,
                                              std::int64_t /*examples*/) const {
    return {};
  }

  /// Returns the rule of the call of all examples under vmap. `is_mapped` tells of each argument whether it
  /// differs between the examples. `placeholders`, the oldest first, stand for vmap's arguments inside of the
  /// mapped function; the rule must not use them afterwards. Null (as here): of rules with mapped_results().
  virtual std::shared_ptr<const CallRule> mapped(const std::vector<bool>& /*is_mapped*/,
                                                 std::span<const LazyTensor> /*placeholders*/) const {
    return nullptr;
  }
  /// Tells whether the mapped rule expects every result to have the mapped axis once one input has it.
  virtual bool maps_all_results() const { return false; }
};

}  // namespace caldera
