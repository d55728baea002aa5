// Calls and their results (engine/graph/call_rule.h): made, and told apart from other nodes. Internal to the
// transforms.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/graph/call_rule.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Makes a call of `rule` whose inputs are `arguments` and the `values` that were computed from them.
LazyTensor make_call(std::shared_ptr<const CallRule> rule, std::span<const LazyTensor> arguments,
                     std::span<const LazyTensor> values);
/// Makes a name for `value`, value `k` of the call, that leads the transforms to the call.
LazyTensor result_of(const LazyTensor& call, const LazyTensor& value, std::size_t k);
/// Makes one for each value. A bare number stays one: it depends on no argument, and behind a result it would
/// have no device to be on.
std::vector<LazyTensor> results_of(const LazyTensor& call, std::span<const LazyTensor> values);

bool is_result(const Node& node);
/// Returns which value of its call a result names.
std::size_t result_index(const Node& result);

/// Returns how many of a call's inputs are arguments; the others are values.
std::size_t argument_count(const Node& call);
/// Divides `inputs`, those of the call, into arguments and values. The result refers to `inputs`.
Call take_apart(const LazyTensor& call, std::span<const LazyTensor> inputs);

}  // namespace caldera
