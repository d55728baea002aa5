// cond and switch_case: one of several functions, chosen by what was computed.
#pragma once

#include <span>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The results of `if_true` where `predicate`, one bool or integer, is true (not 0), and else those of
/// `if_false`: one of them is run, when the value is computed. Both are called once, on stand-ins for
/// `arguments`, and give results of the same number, shapes and dtypes (ValueError, ShapeError, DTypeError).
/// What they capture is differentiated like an argument.
std::vector<LazyTensor> cond(const LazyTensor& predicate, const VectorFunction& if_true,
                             const VectorFunction& if_false, std::span<const LazyTensor> arguments);
LazyTensor cond(const LazyTensor& predicate, const UnaryFunction& if_true, const UnaryFunction& if_false,
                const LazyTensor& argument);

/// The results of branch number `which`, one integer: of the first where it is below 0, of the last where it
/// is beyond. As cond.
std::vector<LazyTensor> switch_case(const LazyTensor& which, std::span<const VectorFunction> branches,
                                    std::span<const LazyTensor> arguments);

}  // namespace caldera
