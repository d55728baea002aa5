// vmap: a function of one example, applied to many at once. A graph-to-graph transform: the function is
// called once, on placeholders of one example's shape, and the graph that it builds is rewritten to carry the
// mapped axis. What comes out has no loop over the examples and fuses like any other graph.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "engine/autodiff/function.h"

namespace caldera {

/// In place of an axis: the argument is the same for every example, or the result must be.
inline constexpr std::nullopt_t kUnmapped = std::nullopt;

/// The mapped axis of every argument (or result), or one for all of them. Negative axes count from the end.
class MapAxes {
 public:
  MapAxes(int all) : all_(true), axes_{all} {}
  MapAxes(std::nullopt_t) : all_(true), axes_{std::nullopt} {}
  MapAxes(std::initializer_list<std::optional<int>> each) : axes_(each) {}
  MapAxes(std::vector<std::optional<int>> each) : axes_(std::move(each)) {}

  /// The axis of each of `count` tensors. Throws ShapeError naming `what` when there are not as many.
  std::vector<std::optional<int>> of(std::size_t count, const char* what) const;

 private:
  bool all_ = false;
  std::vector<std::optional<int>> axes_;
};

/// The function over a mapped axis: arguments have one axis more than `function` expects, at `in_axes`, and
/// results one more than it gives, at `out_axes` (an axis of the result, so -1 is its last). Arguments at
/// kUnmapped are passed as they are. A result that does not depend on a mapped argument is repeated; a bare
/// number becomes a tensor on the device of the mapped arguments, with the dtype that it has next to the
/// first of them.
///
/// Inside `function` every operation and every other transform may be used, vmap too; nothing that depends
/// on a mapped argument may be evaluated there, as it has no value: that is a ValueError. Random tensors do
/// not depend on the arguments, so every example sees the same draw; pass draws as a mapped argument to give
/// each its own. Indices outside an axis mean what they mean for one example. A mapped argument has no
/// meaning outside of the function: the rules of a custom_vjp, which differentiation from outside calls
/// later, are given such tensors as arguments and must not capture them (GradientError).
///
/// The function that is returned throws ShapeError: when mapped axes differ in length, no argument is
/// mapped, a result at kUnmapped depends on a mapped argument, or a tensor would have more than kMaxRank
/// axes with the mapped one; and ValueError for an empty argument or result. An empty `function` is a
/// ValueError at once. It may be called from any thread if `function` may.
VectorFunction vmap(VectorFunction function, MapAxes in_axes = 0, MapAxes out_axes = 0);
TensorFunction vmap(TensorFunction function, MapAxes in_axes = 0, MapAxes out_axes = 0);
UnaryFunction vmap(UnaryFunction function, int in_axis = 0, int out_axis = 0);

}  // namespace caldera
