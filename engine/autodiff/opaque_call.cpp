#include "engine/autodiff/opaque_call.h"

#include <array>
#include <cstdint>
#include <utility>

#include "engine/tensor/storage.h"
#include "ops/core/node_builder.h"

namespace caldera {
namespace {

/// attrs: how many of the inputs are arguments.
const OpDef kCall{.name = "call", .kind = OpClass::call};
/// attrs: which value of the call that input 1 is.
const OpDef kResult{.name = "result", .kind = OpClass::identity};

}  // namespace

LazyTensor make_call(std::shared_ptr<const CallRule> rule, std::span<const LazyTensor> arguments,
                     std::span<const LazyTensor> values) {
  std::vector<Node*> inputs;
  inputs.reserve(arguments.size() + values.size());
  for (const LazyTensor& x : arguments) inputs.push_back(&x.node());
  for (const LazyTensor& x : values) inputs.push_back(&x.node());
  const std::array<std::int64_t, 1> attributes{static_cast<std::int64_t>(arguments.size())};
  return LazyTensor(Node::make_call(kCall, std::move(rule), inputs, attributes));
}

LazyTensor result_of(const LazyTensor& call, const LazyTensor& value, std::size_t k) {
  const std::array<Node*, 2> inputs{&value.node(), &call.node()};
  const std::array<std::int64_t, 1> attributes{static_cast<std::int64_t>(k)};
  return LazyTensor(Node::make(kResult, value.shape(), value.dtype(), value.device(), inputs, attributes));
}

std::vector<LazyTensor> results_of(const LazyTensor& call, std::span<const LazyTensor> values) {
  std::vector<LazyTensor> results;
  results.reserve(values.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    results.push_back(values[k].node().is_scalar_leaf() ? values[k] : result_of(call, values[k], k));
  }
  return results;
}

bool is_result(const Node& node) { return &node.op() == &kResult; }
std::size_t result_index(const Node& result) { return static_cast<std::size_t>(result.attributes()[0]); }

std::size_t argument_count(const Node& call) { return static_cast<std::size_t>(call.attributes()[0]); }
Call take_apart(const LazyTensor& call, std::span<const LazyTensor> inputs) {
  const std::size_t count = argument_count(call.node());
  return {.node = call, .arguments = inputs.first(count), .values = inputs.subspan(count)};
}

}  // namespace caldera
