#include "engine/autodiff/checkpoint/checkpoint.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/barrier.h"
#include "engine/autodiff/checkpoint/inner_values.h"
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

/// Computes again what is between the arguments and the values, but for what is kept.
class CheckpointRule : public CallRule {
 public:
  explicit CheckpointRule(Keep keep) : keep_(std::move(keep)) {}
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

 private:
  Keep keep_;
};

std::shared_ptr<const CallRule> rule_that_keeps(const Keep& keep) {
  static const std::shared_ptr<const CallRule> kNothing = std::make_shared<CheckpointRule>(Keep());
  return keep.is_nothing() ? kNothing : std::make_shared<CheckpointRule>(keep);
}

/// The rule knows nothing of a call, so that it serves mapped ones too.
std::shared_ptr<const CallRule> CheckpointRule::mapped(const std::vector<bool>&,
                                                       std::span<const LazyTensor>) const {
  return rule_that_keeps(keep_);
}

LazyTensor with_inputs(const LazyTensor& x, const Snapshot::Entry& entry,
                       const std::vector<LazyTensor>& inputs) {
  std::vector<Node*> nodes;
  nodes.reserve(entry.inputs.size());
  for (const std::uint32_t input : entry.inputs) nodes.push_back(&inputs[input].node());
  return LazyTensor(x.node().with_inputs(nodes));
}

/// A call's inside, and its gradients as if all of it had been kept.
struct Differentiated {
  Snapshot s;                         // from the arguments to the values
  std::vector<LazyTensor> sources;    // what has a gradient: floating arguments, and what is captured
  std::vector<LazyTensor> along;      // cotangents, marked as arguments of the backward pass
  std::vector<LazyTensor> gradients;  // of the sources; empty where nothing reaches them
};

Differentiated differentiate(const Call& call, std::span<const LazyTensor> cotangents,
                             const IsWanted& is_wanted, std::string_view transform) {
  Differentiated d{.s = take_snapshot(call.values, call.arguments, Targets::end_walk),
                   .sources = {},
                   .along = {},
                   .gradients = {}};
  Snapshot& s = d.s;
  std::unordered_set<std::uint64_t> captured;
  const auto capture = [&](const LazyTensor& x) {
    if (is_wanted(x) && captured.insert(x.node_id()).second) d.sources.push_back(x);
  };
  for (Snapshot::Entry& entry : s.entries) {
    entry.depends = entry.is_target || s.has_path(entry);
    if (entry.is_target && is_floating(entry.tensor.dtype())) d.sources.push_back(entry.tensor);
    if (!entry.depends || entry.is_target) continue;
    for (const std::uint32_t input : entry.inputs) {
      // From outside: a value of its own, however it was computed.
      if (!s.entries[input].depends) capture(s.entries[input].tensor);
    }
  }
  std::vector<LazyTensor> outputs;
  for (std::size_t k = 0; k < call.values.size(); ++k) {
    if (!cotangents[k].defined()) continue;
    if (!s.entries[s.outputs[k]].depends) capture(call.values[k]);
    outputs.push_back(call.values[k]);
    d.along.push_back(argument_of(cotangents[k]));
  }
  d.gradients = caldera::pull_back(outputs, d.sources, d.along, transform, Targets::end_walk);
  return d;
}

/// What the backward pass reads in place of each entry of the call: kept ones themselves, and of the others a
/// copy that is computed from what is kept, once `after` are there.
std::vector<LazyTensor> kept_or_again(const Snapshot& s, const std::vector<bool>& kept,
                                      std::span<const LazyTensor> after) {
  std::vector<LazyTensor> read(s.entries.size());   // by the gradients
  std::vector<LazyTensor> basis(s.entries.size());  // by what is computed again
  for (std::size_t i = 0; i < s.entries.size(); ++i) {
    const Snapshot::Entry& entry = s.entries[i];
    if (entry.is_target || kept[i]) {
      basis[i] = behind_barrier(entry.tensor, after);
      read[i] = entry.is_target ? basis[i] : entry.tensor;
    } else {
      read[i] = basis[i] = entry.depends ? with_inputs(entry.tensor, entry, basis) : entry.tensor;
    }
  }
  return read;
}

Cotangents CheckpointRule::pull_back(const Call& call, std::span<const LazyTensor> cotangents,
                                     const IsWanted& is_wanted, std::string_view transform) const {
  const Differentiated d = differentiate(call, cotangents, is_wanted, transform);
  Cotangents out;
  std::vector<LazyTensor> gradients;
  for (std::size_t i = 0; i < d.gradients.size(); ++i) {
    if (!d.gradients[i].defined()) continue;
    out.emplace_back(d.sources[i], LazyTensor());
    gradients.push_back(d.gradients[i]);
  }
  // The gradients down to the cotangents and to what they read of the call.
  std::vector<LazyTensor> ends;
  std::vector<std::size_t> entries;  // of those of the call
  for (std::size_t i = 0; i < d.s.entries.size(); ++i) {
    if (!d.s.entries[i].depends) continue;
    ends.push_back(d.s.entries[i].tensor);
    entries.push_back(i);
  }
  ends.insert(ends.end(), d.along.begin(), d.along.end());
  const Snapshot backward = take_snapshot(gradients, ends, Targets::end_walk);
  std::vector<bool> kept(d.s.entries.size(), false);
  std::vector<LazyTensor> after(cotangents.begin(), cotangents.end());
  if (!keep_.is_nothing()) {
    std::vector<bool> is_needed(d.s.entries.size(), false);
    for (std::size_t k = 0; k < entries.size(); ++k) is_needed[entries[k]] = backward.targets[k] >= 0;
    const InnerValues inner = inner_values(d.s, is_needed);
    const std::vector<bool> chosen = keep_(inner.values);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      kept[inner.entries[i]] = chosen[i];
      // Nothing of what is written here may read it, but the gradients of an attention do.
      if (chosen[i] && inner.values[i].is_attention_result) after.push_back(inner.values[i].tensor);
    }
  }
  const std::vector<LazyTensor> read = kept_or_again(d.s, kept, after);
  std::vector<LazyTensor> again(backward.entries.size());
  for (std::size_t k = 0; k < entries.size(); ++k) {
    if (backward.targets[k] >= 0) again[static_cast<std::size_t>(backward.targets[k])] = read[entries[k]];
  }
  for (std::size_t i = 0; i < again.size(); ++i) {
    const Snapshot::Entry& entry = backward.entries[i];
    if (again[i].defined()) continue;
    const bool changes = std::ranges::any_of(entry.inputs, [&](std::uint32_t input) {
      return again[input].node_id() != backward.entries[input].tensor.node_id();
    });
    again[i] = changes ? with_inputs(entry.tensor, entry, again) : entry.tensor;
  }
  std::vector<LazyTensor> arguments, values;
  for (std::size_t i = 0; i < d.s.entries.size(); ++i) {
    if (d.s.entries[i].is_target) arguments.push_back(read[i]);
  }
  arguments.insert(arguments.end(), d.along.begin(), d.along.end());
  for (const std::uint32_t output : backward.outputs) values.push_back(again[output]);
  const std::vector<LazyTensor> results =
      results_of(make_call(rule_that_keeps(keep_), arguments, values), values);
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
  const LazyTensor both = make_call(rule_that_keeps(keep_), arguments, values);
  std::vector<LazyTensor> out(call.values.size());
  std::size_t next = out.size();
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (tangents[count + k].defined()) out[k] = result_of(both, tangents[count + k], next++);
  }
  return out;
}

}  // namespace

VectorFunction checkpoint(VectorFunction function, const Keep& keep) {
  check_callable(function, "checkpoint");
  return
      [function = std::move(function), rule = rule_that_keeps(keep)](std::span<const LazyTensor> arguments) {
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
        return results_of(make_call(rule, inside, values), values);
      };
}

TensorFunction checkpoint(TensorFunction function, const Keep& keep) {
  return [all = checkpoint(as_vector_function(std::move(function)), keep)](
             std::span<const LazyTensor> arguments) { return all(arguments)[0]; };
}

UnaryFunction checkpoint(UnaryFunction function, const Keep& keep) {
  return [all = checkpoint(as_tensor_function(std::move(function)), keep)](const LazyTensor& x) {
    return all({&x, 1});
  };
}

}  // namespace caldera
