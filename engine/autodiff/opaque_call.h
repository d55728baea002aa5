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

LazyTensor make_call(std::shared_ptr<const CallRule> rule, std::span<const LazyTensor> arguments,
                     std::span<const LazyTensor> values);
/// `value`, which is value `k` of the call, by the name that leads to the call.
LazyTensor result_of(const LazyTensor& call, const LazyTensor& value, std::size_t k);
/// That of each value. A bare number stays one: it depends on no argument, and behind a result it would have
/// no device to be on.
std::vector<LazyTensor> results_of(const LazyTensor& call, std::span<const LazyTensor> values);

bool is_result(const Node& node);
/// Which value of its call a result stands for.
std::size_t result_index(const Node& result);

/// How many of a call's inputs are arguments.
std::size_t argument_count(const Node& call);
/// The call taken apart. `inputs` are its inputs.
Call taken_apart(const LazyTensor& call, std::span<const LazyTensor> inputs);

}  // namespace caldera
