// Calls: stretches of a graph that are differentiated as a whole, by a rule of their own (custom_vjp,
// checkpoint). Internal to the transforms.
//
// A call is a node without a value. Its inputs are the arguments, then the values that were computed from
// them. Around each value goes a result, a name for the value that has the call as its second input: walks of
// the transforms come to the call through it, and evaluation, to which a call is a number that nobody reads,
// does not. So the graph keeps a call, and what hangs on it, exactly as long as a result can be
// differentiated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/autodiff/batching.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct CustomVjp;

/// A call, taken apart. `inputs` are those of the call.
struct Call {
  LazyTensor node;
  std::span<const LazyTensor> arguments;
  std::span<const LazyTensor> values;

  Call(LazyTensor call, std::span<const LazyTensor> inputs);
};

bool is_call(const Node& node);
bool is_result(const Node& node);
/// Which value of its call a result stands for.
std::size_t result_index(const Node& result);

LazyTensor checkpoint_call(std::span<const LazyTensor> arguments, std::span<const LazyTensor> values);
LazyTensor custom_call(std::shared_ptr<const CustomVjp> rule, std::span<const LazyTensor> arguments,
                       std::span<const LazyTensor> values);
/// Null for a checkpoint.
std::shared_ptr<const CustomVjp> rule_of(const Node& call);
LazyTensor result_of(const LazyTensor& call, const LazyTensor& value, std::size_t k);
std::vector<LazyTensor> results_of(const LazyTensor& call, std::span<const LazyTensor> values);

/// Tensors of the graph and what is to be added to their cotangents.
using Cotangents = std::vector<std::pair<LazyTensor, LazyTensor>>;
/// Throws GradientError if value k of a custom call depends on a target past the arguments: that part of the
/// derivative would be lost.
void check_captured(const Call& call, const std::function<bool(std::size_t k)>& depends);
/// What the call sends back for the cotangents of its values (empty where zero). Throws ShapeError,
/// DTypeError or DeviceError when the rule gave what does not fit its argument.
Cotangents pull_back_custom(const Call& call, std::span<const LazyTensor> cotangents);
/// Computes the values anew from the arguments, behind barriers, as a checkpoint of its own: what is
/// differentiated again is computed again as well. `depends` tells whether the cotangent of a tensor is
/// wanted: the stretch may use others than the arguments.
Cotangents pull_back_checkpoint(const Call& call, std::span<const LazyTensor> cotangents,
                                const std::function<bool(const LazyTensor&)>& depends,
                                std::string_view transform);

/// Tangents of the values for those of arguments and values (empty where zero), as tangents of the results.
/// Throws as pull_back_custom, and NoTangentRule naming `transform`.
std::vector<LazyTensor> push_custom(const Call& call, std::span<const LazyTensor> tangents,
                                    std::string_view transform);
std::vector<LazyTensor> push_checkpoint(const Call& call, std::span<const LazyTensor> tangents);

/// The operation of `node` on other inputs of the same shapes. A call keeps its rule.
LazyTensor rebuilt(const Node& node, std::span<Node* const> inputs);

/// The call of all examples, for batch().
Batched batch_call(const Node& call, std::span<const Batched> inputs, const Examples& examples);

}  // namespace caldera
