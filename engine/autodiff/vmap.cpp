#include "engine/autodiff/vmap.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/batching.h"
#include "engine/autodiff/snapshot.h"
#include "engine/graph/tracing/tracing.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

using Axis = std::optional<int>;

const OpDef kPlaceholder{.name = "mapped argument", .kind = OpClass::placeholder, .zero_gradient = true};

LazyTensor moved_axis(const LazyTensor& x, int from, int to) {
  std::vector<int> axes;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != from) axes.push_back(i);
  }
  axes.insert(axes.begin() + to, from);
  return permute_dims(x, axes);
}

/// The arguments of one call, and what stands for them inside of the function.
class Mapping {
 public:
  Mapping(std::span<const LazyTensor> arguments, const std::vector<Axis>& axes) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (axes[i]) {
        add_mapped(arguments[i], *axes[i], i);
      } else {
        inner_.push_back(arguments[i]);
      }
    }
    if (examples_.placeholders.empty()) {
      throw ShapeError("vmap: no argument is mapped; give at least one an axis in in_axes");
    }
  }

  std::span<const LazyTensor> inner() const { return inner_; }

  /// What the function gave, for all examples.
  std::vector<Batched> rewrite(std::span<const LazyTensor> results) const {
    Snapshot s = take_snapshot(results, examples_.placeholders);
    std::vector<Batched> slots(s.entries.size());
    std::vector<Batched> inputs;
    for (std::size_t k = 0; k < s.targets.size(); ++k) {
      if (s.targets[k] >= 0) slots[static_cast<std::size_t>(s.targets[k])] = {mapped_[k], true};
    }
    for (std::size_t i = 0; i < s.entries.size(); ++i) {
      Snapshot::Entry& entry = s.entries[i];
      entry.depends = entry.is_target || s.has_path(entry);
      if (entry.is_target) continue;
      if (!entry.depends) {
        slots[i].value = entry.tensor;
        continue;
      }
      inputs.clear();
      for (std::uint32_t input : entry.inputs) inputs.push_back(slots[input]);
      slots[i] = batch(entry.tensor.node(), inputs, examples_);
    }
    std::vector<Batched> out;
    out.reserve(s.outputs.size());
    for (std::uint32_t output : s.outputs) out.push_back(slots[output]);
    return out;
  }

  const Examples& examples() const { return examples_; }

 private:
  void add_mapped(const LazyTensor& argument, int axis, std::size_t i) {
    const int at =
        argument.shape().normalize_axis(axis, fmt::format("vmap: argument {} (in_axes)", i).c_str());
    const std::int64_t extent = argument.shape()[at];
    if (examples_.placeholders.empty()) {
      examples_.size = extent;
      first_ = i;
    } else if (extent != examples_.size) {
      throw ShapeError(
          fmt::format("vmap: argument {} has {} along its mapped axis, argument {} of shape {} has {} along "
                      "axis {}; mapped axes must have one length",
                      first_, examples_.size, i, argument.shape().to_string(), extent, axis));
    }
    Shape one = argument.shape();
    one.erase(at);
    if (examples_.placeholders.empty()) Node::start_ids();  // captured tensors of any thread are older
    examples_.placeholders.emplace_back(Node::make(kPlaceholder, one, argument.dtype(), argument.device()));
    examples_.placeholders.back().node().set_traced();
    mapped_.push_back(moved_axis(argument, at, 0));
    inner_.push_back(examples_.placeholders.back());
  }

  std::vector<LazyTensor> inner_;
  std::vector<LazyTensor> mapped_;  // what each stands for, with the mapped axis in front
  Examples examples_;
  std::size_t first_ = 0;  // the first mapped argument
};

LazyTensor placed(const Batched& result, const Axis& axis, const Examples& examples, std::size_t k) {
  if (!axis) {
    if (!result.is_mapped) return result.value;
    throw ShapeError(
        fmt::format("vmap: result {} depends on a mapped argument, so it differs between the examples; give "
                    "it an out axis",
                    k));
  }
  const LazyTensor all = with_mapped_axis(result, examples);
  const std::string where = fmt::format("vmap: result {} (out_axes)", k);
  return moved_axis(all, 0, all.shape().normalize_axis(*axis, where.c_str()));
}

}  // namespace

std::vector<Axis> MapAxes::of(std::size_t count, const char* what) const {
  if (all_) return std::vector<Axis>(count, axes_[0]);
  if (axes_.size() != count) {
    throw ShapeError(fmt::format("vmap: {} axes are given for {} {}", axes_.size(), count, what));
  }
  return axes_;
}

VectorFunction vmap(VectorFunction function, MapAxes in_axes, MapAxes out_axes) {
  check_callable(function, "vmap");
  return [function = std::move(function), in_axes = std::move(in_axes),
          out_axes = std::move(out_axes)](std::span<const LazyTensor> arguments) {
    check_defined(arguments, "vmap", "argument");
    const Mapping mapping(arguments, in_axes.of(arguments.size(), "arguments"));
    const std::vector<LazyTensor> results = [&] {
      const Tracing tracing;
      return function(mapping.inner());
    }();
    check_defined(results, "vmap", "result");
    const std::vector<Axis> axes = out_axes.of(results.size(), "results");
    const std::vector<Batched> all = mapping.rewrite(results);
    std::vector<LazyTensor> out;
    out.reserve(all.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      out.push_back(placed(all[k], axes[k], mapping.examples(), k));
    }
    return out;
  };
}

TensorFunction vmap(TensorFunction function, MapAxes in_axes, MapAxes out_axes) {
  return [all = vmap(as_vector_function(std::move(function)), std::move(in_axes), std::move(out_axes))](
             std::span<const LazyTensor> arguments) { return all(arguments)[0]; };
}

UnaryFunction vmap(UnaryFunction function, int in_axis, int out_axis) {
  return [all = vmap(as_tensor_function(std::move(function)), in_axis, out_axis)](const LazyTensor& x) {
    return all({&x, 1});
  };
}

}  // namespace caldera
