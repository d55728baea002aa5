#include "engine/autodiff/vmap.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/batching.h"
#include "engine/autodiff/mapping.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

using Axis = std::optional<int>;

LazyTensor moved_axis(const LazyTensor& x, int from, int to) {
  std::vector<int> axes;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != from) axes.push_back(i);
  }
  axes.insert(axes.begin() + to, from);
  return permute_dims(x, axes);
}

/// The arguments of one call, each with its mapped axis in front.
std::vector<Batched> with_axis_in_front(std::span<const LazyTensor> arguments,
                                        const std::vector<Axis>& axes) {
  std::vector<Batched> out;
  std::optional<std::size_t> first;  // the first mapped argument
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const LazyTensor& x = arguments[i];
    if (!axes[i]) {
      out.push_back({x, false});
      continue;
    }
    const int at = x.shape().normalize_axis(*axes[i], fmt::format("vmap: argument {} (in_axes)", i).c_str());
    out.push_back({moved_axis(x, at, 0), true});
    if (!first) first = i;
    const std::int64_t length = out[*first].value.shape(0);
    if (x.shape()[at] == length) continue;
    throw ShapeError(
        fmt::format("vmap: argument {} has {} along its mapped axis, argument {} of shape {} has {} along "
                    "axis {}; mapped axes must have one length",
                    *first, length, i, x.shape().to_string(), x.shape()[at], *axes[i]));
  }
  if (!first) throw ShapeError("vmap: no argument is mapped; give at least one an axis in in_axes");
  return out;
}

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
    const Mapping mapping(with_axis_in_front(arguments, in_axes.of(arguments.size(), "arguments")));
    const std::vector<LazyTensor> results = mapping.call(function);
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
