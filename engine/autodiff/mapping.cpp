#include "engine/autodiff/mapping.h"

#include <fmt/core.h>

#include <unordered_map>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/opaque_call.h"
#include "engine/autodiff/snapshot.h"
#include "engine/base/error.h"
#include "engine/graph/tracing/tracing.h"

namespace caldera {
namespace {

const OpDef kPlaceholder{.name = "mapped argument", .kind = OpClass::placeholder, .zero_gradient = true};

/// Whether a node is part of a loop or branch, which is mapped with its call.
bool goes_with_call(const Snapshot& s, const Snapshot::Entry& entry) {
  const auto kind = [](const Snapshot::Entry& of) { return of.tensor.node().kind(); };
  return kind(entry) == OpClass::control ||
         (kind(entry) == OpClass::other_result && kind(s.entries[entry.inputs[0]]) == OpClass::control);
}

}  // namespace

Mapping::Mapping(std::vector<Batched> arguments) {
  for (Batched& x : arguments) {
    if (!x.is_mapped) {
      inner_.push_back(std::move(x.value));
      continue;
    }
    Shape one = x.value.shape();
    one.erase(0);
    if (examples_.placeholders.empty()) {
      examples_.size = x.value.shape(0);
      Node::start_ids();  // captured tensors of any thread are older
    }
    examples_.placeholders.emplace_back(Node::make(kPlaceholder, one, x.value.dtype(), x.value.device()));
    examples_.placeholders.back().node().set_traced();
    inner_.push_back(examples_.placeholders.back());
    mapped_.push_back(std::move(x.value));
  }
}

std::vector<LazyTensor> Mapping::call(const VectorFunction& function) const {
  std::vector<LazyTensor> results = [&] {
    const Tracing tracing;
    return function(inner_);
  }();
  check_defined(results, "vmap", "result");
  return results;
}

std::vector<Batched> Mapping::rewrite(std::span<const LazyTensor> results) const {
  Snapshot s = take_snapshot(results, examples_.placeholders);
  std::vector<Batched> slots(s.entries.size());
  std::unordered_map<std::size_t, std::vector<Batched>> of_calls;  // results of those mapped as a whole
  std::vector<Batched> inputs;
  for (std::size_t k = 0; k < s.targets.size(); ++k) {
    if (s.targets[k] >= 0) slots[static_cast<std::size_t>(s.targets[k])] = {mapped_[k], true};
  }
  for (std::size_t i = 0; i < s.entries.size(); ++i) {
    Snapshot::Entry& entry = s.entries[i];
    const Node& node = entry.tensor.node();
    entry.depends = entry.is_target || s.has_path(entry);
    if (entry.is_target) continue;
    if (!entry.depends) {
      slots[i].value = entry.tensor;
      continue;
    }
    if (node.kind() == OpClass::control && !node.op().zero_gradient)  // of engine/distributed
      throw ValueError(
          fmt::format("vmap: {} exchanges whole tensors; call it outside of vmap", node.op().name));
    if (goes_with_call(s, entry)) continue;
    if (is_result(node)) {
      const auto call = of_calls.find(entry.inputs[1]);
      if (call != of_calls.end()) {
        slots[i] = call->second[result_index(node)];
        continue;
      }
    }
    inputs.clear();
    for (const std::uint32_t input : entry.inputs) inputs.push_back(slots[input]);
    if (node.is_call()) {
      std::vector<Batched> whole =
          node.call_rule()->mapped_results(std::span(inputs).first(argument_count(node)), examples_.size);
      if (!whole.empty()) {
        of_calls[i] = std::move(whole);
        continue;
      }
    }
    for (const Batched& input : inputs) {
      if (input.value.defined()) continue;
      throw PlanError(fmt::format("vmap: '{}' reads a loop or branch past its call", node.op().name));
    }
    slots[i] = batch(node, inputs, examples_);
  }
  std::vector<Batched> out;
  out.reserve(s.outputs.size());
  for (const std::uint32_t output : s.outputs) out.push_back(slots[output]);
  return out;
}

std::vector<Batched> mapped_over(const VectorFunction& function, std::span<const Batched> arguments) {
  const Mapping mapping(std::vector(arguments.begin(), arguments.end()));
  return mapping.rewrite(mapping.call(function));
}

}  // namespace caldera
