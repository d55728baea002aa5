#include "engine/autodiff/checkpoint.h"

#include <unordered_set>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/barrier.h"
#include "engine/autodiff/opaque_call.h"
#include "engine/autodiff/reverse.h"
#include "engine/autodiff/snapshot.h"
#include "engine/graph/jvp.h"
#include "engine/graph/tracing/tracing.h"
#include "engine/graph/vjp.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"

namespace caldera {
namespace {

/// Marks where a checkpointed part of the graph begins.
const OpDef kArgument{.name = "checkpoint argument",
                      .kind = OpClass::identity,
                      .vjp = ops::pass_cotangent,
                      .jvp = ops::linear_jvp};

LazyTensor argument_of(const LazyTensor& x) { return ops::make(kArgument, x.shape(), x.dtype(), {x}); }

/// Computes again what is between the arguments and the values.
class CheckpointRule : public CallRule {
 public:
  std::string title() const override { return "checkpoint"; }
  /// Computes the values again from the arguments, behind barriers, as a checkpoint of its own: what is
  /// differentiated again is computed again as well. Captured tensors get their cotangents too.
  Cotangents pull_back(const Call& call, std::span<const LazyTensor> cotangents, const IsWanted& is_wanted,
                       std::string_view transform) const override;
  std::vector<LazyTensor> push_forward(const Call& call, std::span<const LazyTensor> tangents,
                                       std::string_view transform) const override;
  std::shared_ptr<const CallRule> mapped(const std::vector<bool>& is_mapped,
                                         std::span<const LazyTensor> placeholders) const override;
  bool maps_all_results() const override { return false; }
};

/// One serves all calls, mapped ones too: it knows nothing of them.
const std::shared_ptr<const CallRule>& checkpoint_rule() {
  static const std::shared_ptr<const CallRule> kRule = std::make_shared<CheckpointRule>();
  return kRule;
}

std::shared_ptr<const CallRule> CheckpointRule::mapped(const std::vector<bool>&,
                                                       std::span<const LazyTensor>) const {
  return checkpoint_rule();
}

LazyTensor checkpoint_call(std::span<const LazyTensor> arguments, std::span<const LazyTensor> values) {
  return make_call(checkpoint_rule(), arguments, values);
}

Cotangents CheckpointRule::pull_back(const Call& call, std::span<const LazyTensor> cotangents,
                                     const IsWanted& is_wanted, std::string_view transform) const {
  // What is between arguments and values, built again.
  Snapshot s = take_snapshot(call.values, call.arguments, Targets::end_walk);
  std::vector<LazyTensor> again(s.entries.size());
  std::vector<LazyTensor> sources, targets;  // what gets a cotangent, and what stands for it in the copy
  std::vector<LazyTensor> arguments;         // of the copy, and of what is differentiated there
  std::unordered_set<std::uint64_t> captured;
  for (std::size_t i = 0; i < s.entries.size(); ++i) {
    Snapshot::Entry& entry = s.entries[i];
    again[i] = entry.tensor;
    entry.depends = entry.is_target || s.has_path(entry);
    if (!entry.depends) continue;
    if (entry.is_target) {
      again[i] = behind_barrier(entry.tensor, cotangents);
      arguments.push_back(again[i]);
      if (!is_floating(entry.tensor.dtype())) continue;
      sources.push_back(entry.tensor);
      targets.push_back(again[i]);
      continue;
    }
    std::vector<Node*> inputs;
    inputs.reserve(entry.inputs.size());
    for (std::uint32_t input : entry.inputs) {
      inputs.push_back(&again[input].node());
      const LazyTensor& x = s.entries[input].tensor;
      // From outside: a value of its own, however it was computed.
      if (s.entries[input].depends || !is_wanted(x) || !captured.insert(x.node_id()).second) continue;
      sources.push_back(x);
      targets.push_back(x);
    }
    again[i] = LazyTensor(entry.tensor.node().with_inputs(inputs));
  }
  std::vector<LazyTensor> outputs, along;
  for (std::size_t k = 0; k < call.values.size(); ++k) {
    if (!cotangents[k].defined()) continue;
    const LazyTensor& value = call.values[k];
    const bool is_computed = s.entries[s.outputs[k]].depends;
    if (!is_computed && is_wanted(value) && captured.insert(value.node_id()).second) {
      sources.push_back(value);
      targets.push_back(value);
    }
    outputs.push_back(again[s.outputs[k]]);
    along.push_back(argument_of(cotangents[k]));
    arguments.push_back(along.back());
  }
  std::vector<LazyTensor> grads = caldera::pull_back(outputs, targets, along, transform, Targets::end_walk);
  Cotangents out;
  std::vector<LazyTensor> values;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    out.emplace_back(sources[i], LazyTensor());
    values.push_back(grads[i]);
  }
  const std::vector<LazyTensor> results = results_of(checkpoint_call(arguments, values), values);
  for (std::size_t i = 0; i < results.size(); ++i) out[i].second = results[i];
  return out;
}

std::vector<LazyTensor> CheckpointRule::push_forward(const Call& call, std::span<const LazyTensor> tangents,
                                                     std::string_view) const {
  // The tangents belong to the call: differentiated in reverse, they are computed again as well.
  std::vector<LazyTensor> arguments(call.arguments.begin(), call.arguments.end());
  std::vector<LazyTensor> values(call.values.begin(), call.values.end());
  const std::size_t count = arguments.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (tangents[i].defined()) arguments.push_back(tangents[i]);
  }
  for (std::size_t k = 0; k < call.values.size(); ++k) {
    if (tangents[count + k].defined()) values.push_back(tangents[count + k]);
  }
  const LazyTensor both = checkpoint_call(arguments, values);
  std::vector<LazyTensor> out(call.values.size());
  std::size_t next = out.size();
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (tangents[count + k].defined()) out[k] = result_of(both, tangents[count + k], next++);
  }
  return out;
}

}  // namespace

VectorFunction checkpoint(VectorFunction function) {
  check_callable(function, "checkpoint");
  return [function = std::move(function)](std::span<const LazyTensor> arguments) {
    check_defined(arguments, "checkpoint", "argument");
    std::vector<LazyTensor> inside;
    inside.reserve(arguments.size());
    for (const LazyTensor& x : arguments) {
      inside.push_back(argument_of(x));
      inside.back().node().set_traced();
    }
    const std::vector<LazyTensor> values = [&] {
      const Tracing tracing;
      return function(inside);
    }();
    check_defined(values, "checkpoint", "result");
    return results_of(checkpoint_call(inside, values), values);
  };
}

TensorFunction checkpoint(TensorFunction function) {
  return [all = checkpoint(as_vector_function(std::move(function)))](std::span<const LazyTensor> arguments) {
    return all(arguments)[0];
  };
}

UnaryFunction checkpoint(UnaryFunction function) {
  return [all = checkpoint(as_tensor_function(std::move(function)))](const LazyTensor& x) {
    return all({&x, 1});
  };
}

}  // namespace caldera
