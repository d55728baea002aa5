#include "engine/control/body.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <unordered_set>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/snapshot.h"
#include "engine/base/error.h"
#include "engine/graph/tracing/tracing.h"
#include "engine/runtime/capture/graph_key.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"

namespace caldera {
namespace {

/// A result of a part: a node of its own even where it is an argument as it came, or another result again.
const OpDef kPartResult{.name = "result", .kind = OpClass::identity};

LazyTensor stand_in_for(const LazyTensor& x) {
  LazyTensor made(Node::make(kBodyArgument, x.shape(), x.dtype(), x.device()));
  made.node().set_traced();
  return made;
}

/// Whether the value is made of numbers and coordinates by few operations: to compute it inside costs less
/// than to bring it in. Under graph_mutex().
bool is_generated(const Node& node, int depth = 4) {
  if (node.is_scalar_leaf()) return true;
  if (node.has_value() || depth == 0) return false;
  switch (node.kind()) {
    case OpClass::index:
    case OpClass::elementwise:
    case OpClass::broadcast:
    case OpClass::reshape:
    case OpClass::identity:
      return std::ranges::all_of(node.inputs(),
                                 [&](const NodePtr& input) { return is_generated(*input, depth - 1); });
    default:
      return false;
  }
}

/// The graph behind `results` again, with `values` in place of `tensors`.
std::vector<LazyTensor> substituted(std::span<const LazyTensor> results, std::span<const LazyTensor> tensors,
                                    std::span<const LazyTensor> values) {
  const Snapshot s = take_snapshot(results, tensors, Targets::end_walk);
  std::vector<LazyTensor> now(s.entries.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (s.targets[i] >= 0) now[static_cast<std::size_t>(s.targets[i])] = values[i];
  }
  std::vector<Node*> inputs;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Snapshot::Entry& entry = s.entries[i];
    if (entry.is_target) continue;
    inputs.clear();
    bool changes = false;
    for (const std::uint32_t input : entry.inputs) {
      inputs.push_back(&now[input].node());
      changes = changes || inputs.back() != &s.entries[input].tensor.node();
    }
    now[i] = changes ? LazyTensor(entry.tensor.node().with_inputs(inputs)) : entry.tensor;
  }
  std::vector<LazyTensor> out;
  out.reserve(s.outputs.size());
  for (const std::uint32_t output : s.outputs) out.push_back(now[output]);
  return out;
}

/// Counts the stand-ins as leaves with a value while it lives. Under graph_mutex().
class Leaves {
 public:
  explicit Leaves(std::span<const LazyTensor> stand_ins) : stand_ins_(stand_ins) {
    for (const LazyTensor& x : stand_ins_) x.node().set_value({});
  }
  ~Leaves() {
    for (const LazyTensor& x : stand_ins_) x.node().drop_value();
  }
  Leaves(const Leaves&) = delete;
  Leaves& operator=(const Leaves&) = delete;

 private:
  std::span<const LazyTensor> stand_ins_;
};

}  // namespace

std::vector<std::uint32_t> numbered(std::size_t count, std::uint32_t first) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::vector<LazyTensor> joined(std::initializer_list<std::span<const LazyTensor>> lists) {
  std::vector<LazyTensor> all;
  for (const auto list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Body::Body(const VectorFunction& function, std::span<const LazyTensor> like, std::string_view title) {
  Node::start_ids();
  for (const LazyTensor& x : like) parameters_.push_back(stand_in_for(x));
  // Younger than all that there is, whichever thread made it.
  const LazyTensor start =
      stand_in_for(LazyTensor(Node::make(kBodyArgument, Shape{}, DType::f32, Device::cpu())));
  const std::uint64_t first = parameters_.empty() ? start.node_id() : parameters_.front().node_id();
  {
    const Tracing tracing;
    results_ = function(parameters_);
  }
  check_defined(results_, title, "result");
  const Device device = like.empty() ? default_device() : like.front().device();
  for (LazyTensor& x : results_) x = ops::anchored(x, device);
  std::vector<Node*> roots;
  for (const LazyTensor& x : results_) roots.push_back(&x.node());
  std::unordered_set<const Node*> known;
  for (const LazyTensor& x : parameters_) known.insert(&x.node());
  {
    const std::scoped_lock lock(graph_mutex());
    const auto is_leaf = [&](const Node& node) {
      return known.contains(&node) || node.is_scalar_leaf() || node.has_value() ||
             (node.id() < first && !node.is_call() && !is_generated(node));
    };
    for (Node* node : topological_order(roots, is_leaf)) {
      if (!is_leaf(*node) || known.contains(node) || node->is_scalar_leaf()) continue;
      node->add_ref();
      captured_.emplace_back(NodePtr(node));
    }
  }
  close();
}

/// Puts parameters in the place of what was captured.
void Body::close() {
  if (captured_.empty()) return;
  const std::size_t arguments = parameters_.size();
  for (const LazyTensor& x : captured_) parameters_.push_back(stand_in_for(x));
  results_ = substituted(results_, captured_, std::span(parameters_).subspan(arguments));
}

std::vector<LazyTensor> Body::operator()(std::span<const LazyTensor> values) const {
  return substituted(results_, parameters_, values);
}

ControlPart Body::part(std::span<const std::uint32_t> wanted, std::span<const std::uint32_t> of,
                       std::vector<LazyTensor>& numbers, Hash128& hash) const {
  if (of.size() != parameters_.size())
    throw PlanError(fmt::format("a part of {} parameters bound to {}", parameters_.size(), of.size()));
  std::vector<LazyTensor> outputs;
  for (const std::uint32_t k : wanted) {
    const LazyTensor& x = results_[k];
    std::vector<Node*> inputs{&x.node()};
    outputs.emplace_back(Node::make(kPartResult, x.shape(), x.dtype(), x.device(), inputs));
  }
  ControlPart part;
  const std::scoped_lock lock(graph_mutex());
  const Leaves leaves(parameters_);
  GraphKey key;
  key.reset(outputs.empty() ? Device::cpu() : outputs.front().device());
  for (const LazyTensor& x : outputs) key.outputs.push_back(&x.node());
  key.walk_again();
  if (key.crosses) {
    throw ValueError(
        "a loop or branch computes on one device: move tensors before it, and its results after it (to())");
  }
  part.program = key.program();
  part.nodes = key.owned_nodes();
  hash.mix_both(key.hash.lo, key.hash.hi);
  for (const Node* leaf : key.data) {
    const auto found = std::ranges::find(parameters_, leaf, [](const LazyTensor& x) { return &x.node(); });
    part.parameters.push_back(of[static_cast<std::size_t>(found - parameters_.begin())]);
    hash.mix(part.parameters.back());
  }
  for (Node* number : key.scalars) {
    auto found = std::ranges::find(numbers, number, [](const LazyTensor& x) { return &x.node(); });
    if (found == numbers.end()) {
      number->add_ref();
      numbers.emplace_back(NodePtr(number));
      found = numbers.end() - 1;
    }
    part.numbers.push_back(static_cast<std::uint32_t>(found - numbers.begin()));
    hash.mix(part.numbers.back());
  }
  for (const std::int64_t position : key.positions) {
    part.program.constants.push_back(static_cast<std::uint64_t>(position));
    hash.mix(static_cast<std::uint64_t>(position));
  }
  return part;
}

}  // namespace caldera
