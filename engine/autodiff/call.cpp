#include "engine/autodiff/call.h"

#include <array>

#include "engine/autodiff/custom_vjp.h"
#include "engine/tensor/storage.h"

namespace caldera {
namespace {

// Of the class of numbers, which evaluation binds without looking at their inputs.
const OpDef kCustomCall{.name = "custom_vjp", .kind = OpClass::scalar};
const OpDef kCheckpointCall{.name = "checkpoint", .kind = OpClass::scalar};
const OpDef kResult{.name = "result", .kind = OpClass::identity};

/// Carries a rule in the value slot of its call: it lives as long as the node.
class RuleStorage : public Storage {
 public:
  explicit RuleStorage(std::shared_ptr<const CustomVjp> its_rule)
      : Storage(Device::cpu(), 0), rule(std::move(its_rule)) {}
  const std::shared_ptr<const CustomVjp> rule;
};

LazyTensor make_call(const OpDef& op, std::span<const LazyTensor> arguments,
                     std::span<const LazyTensor> values) {
  std::vector<Node*> inputs;
  inputs.reserve(arguments.size() + values.size());
  for (const LazyTensor& x : arguments) inputs.push_back(&x.node());
  for (const LazyTensor& x : values) inputs.push_back(&x.node());
  // A number that is 0 and not weak, and then how many of the inputs are arguments.
  const std::array<std::int64_t, 3> attributes{0, 0, static_cast<std::int64_t>(arguments.size())};
  return LazyTensor(Node::make(op, Shape{}, DType::f32, Device::cpu(), inputs, attributes));
}

}  // namespace

Call::Call(LazyTensor call, std::span<const LazyTensor> inputs) : node(std::move(call)) {
  const auto count = static_cast<std::size_t>(node.node().attributes()[2]);
  arguments = inputs.first(count);
  values = inputs.subspan(count);
}

bool is_call(const Node& node) { return &node.op() == &kCustomCall || &node.op() == &kCheckpointCall; }
bool is_result(const Node& node) { return &node.op() == &kResult; }
std::size_t result_index(const Node& result) { return static_cast<std::size_t>(result.attributes()[0]); }

LazyTensor checkpoint_call(std::span<const LazyTensor> arguments, std::span<const LazyTensor> values) {
  return make_call(kCheckpointCall, arguments, values);
}

LazyTensor custom_call(std::shared_ptr<const CustomVjp> rule, std::span<const LazyTensor> arguments,
                       std::span<const LazyTensor> values) {
  LazyTensor call = make_call(kCustomCall, arguments, values);
  call.node().set_value({std::make_shared<RuleStorage>(std::move(rule)), 0, nullptr});
  return call;
}

std::shared_ptr<const CustomVjp> rule_of(const Node& call) {
  if (&call.op() != &kCustomCall) return nullptr;
  return static_cast<const RuleStorage&>(*call.value().storage).rule;
}

LazyTensor result_of(const LazyTensor& call, const LazyTensor& value, std::size_t k) {
  const std::array<Node*, 2> inputs{&value.node(), &call.node()};
  const std::array<std::int64_t, 1> attributes{static_cast<std::int64_t>(k)};
  return LazyTensor(Node::make(kResult, value.shape(), value.dtype(), value.device(), inputs, attributes));
}

std::vector<LazyTensor> results_of(const LazyTensor& call, std::span<const LazyTensor> values) {
  std::vector<LazyTensor> results;
  results.reserve(values.size());
  // A bare number depends on no argument; behind a result it would have no device to be on.
  for (std::size_t k = 0; k < values.size(); ++k) {
    results.push_back(values[k].node().is_scalar_leaf() ? values[k] : result_of(call, values[k], k));
  }
  return results;
}

LazyTensor rebuilt(const Node& node, std::span<Node* const> inputs) {
  LazyTensor again(
      Node::make(node.op(), node.shape(), node.dtype(), node.device(), inputs, node.attributes().values()));
  if (&node.op() == &kCustomCall) again.node().set_value(node.value());
  return again;
}

Batched batch_call(const Node& call, std::span<const Batched> inputs, const Examples& examples) {
  std::vector<LazyTensor> all;
  all.reserve(inputs.size());
  const auto count = static_cast<std::size_t>(call.attributes()[2]);
  std::vector<bool> is_mapped;
  bool any = false;
  for (const Batched& input : inputs) any = any || input.is_mapped;
  const std::shared_ptr<const CustomVjp> rule = rule_of(call);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    // All results of a rule of its own differ between the examples if one does: its mapped rule takes them
    // so.
    const bool is_value = i >= count;
    all.push_back(rule && any && is_value ? with_mapped_axis(inputs[i], examples) : inputs[i].value);
    if (!is_value) is_mapped.push_back(inputs[i].is_mapped);
  }
  const std::span<const LazyTensor> span(all);
  const auto arguments = span.first(count), values = span.subspan(count);
  if (!rule) return {checkpoint_call(arguments, values), any};
  return {custom_call(any ? mapped_rule(rule, is_mapped, examples.placeholders) : rule, arguments, values),
          any};
}

}  // namespace caldera
