// CallRule: the contract between the transforms and calls, stretches of a graph that are differentiated and
// mapped as a whole by a rule of their own (custom_vjp, checkpoint).
//
// A call is a node of OpClass::call, without a value, that carries its rule. Its inputs are the arguments,
// then the values that were computed from them. Around each value goes a result, a name for the value that
// has the call as its second input: walks of the transforms come to the call through it, and evaluation does
// not. So the graph keeps a call, and what hangs on it, exactly as long as a result can be differentiated.
#pragma once

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

/// Whether a tensor of the graph depends on what is differentiated by, so that its cotangent is wanted.
using IsWanted = std::function<bool(const LazyTensor&)>;

/// How a call is differentiated and mapped. Constant and shared by calls: its functions may be called from
/// any thread, and not while the caller holds graph_mutex().
class CallRule {
 public:
  CallRule() = default;
  CallRule(const CallRule&) = delete;
  CallRule& operator=(const CallRule&) = delete;
  virtual ~CallRule() = default;

  /// What graphs and messages call it: "checkpoint".
  virtual std::string title() const = 0;

  /// What the call sends back for the cotangents of its values (empty where zero). Tensors that are not
  /// wanted may be among what it gives. Throws errors that begin with the rule's title or with the name of
  /// `transform`, on whose behalf it is called.
  virtual Cotangents pull_back(const Call& call, std::span<const LazyTensor> cotangents,
                               const IsWanted& is_wanted, std::string_view transform) const = 0;

  /// Tangents of the values for those of the arguments and then the values (empty where zero), as tangents of
  /// the results. Throws as pull_back.
  virtual std::vector<LazyTensor> push_forward(const Call& call, std::span<const LazyTensor> tangents,
                                               std::string_view transform) const = 0;

  /// The rule of all examples under vmap; `is_mapped` tells of each argument whether it differs between them.
  /// What stands for mapped arguments inside of the mapped function (`placeholders`, the oldest first) means
  /// nothing once the map has ended.
  virtual std::shared_ptr<const CallRule> mapped(const std::vector<bool>& is_mapped,
                                                 std::span<const LazyTensor> placeholders) const = 0;
  /// Whether that takes all results to differ between the examples as soon as one of the call's inputs does.
  virtual bool maps_all_results() const = 0;
};

}  // namespace caldera
