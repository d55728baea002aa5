#include "engine/autodiff/jacobian.h"

#include <fmt/core.h>

#include <string_view>

#include "engine/autodiff/autodiff.h"
#include "engine/autodiff/jvp.h"
#include "engine/autodiff/traced.h"
#include "engine/autodiff/vmap.h"
#include "ops/ops.h"

namespace caldera {
namespace {

/// The unit vectors of the space that `x` is in, one after the other along axis 0.
LazyTensor basis_of(const LazyTensor& x) {
  const std::int64_t count = x.numel();
  const LazyTensor which = arange(count, DType::i32, x.device());
  Shape shape = x.shape();
  shape.insert(0, count);
  return reshape(astype(expand_dims(which, 1) == which, x.dtype()), shape);
}

void check_floating(const LazyTensor& x, std::string_view what) {
  if (is_floating(x.dtype())) return;
  throw GradientError(
      fmt::format("jacobian: the {} of shape {} is {}; only floating tensors have derivatives", what,
                  x.shape().to_string(), name(x.dtype())));
}

Shape joined(const Shape& result, const Shape& argument) {
  if (result.rank() + argument.rank() > kMaxRank) {
    throw ShapeError(fmt::format(
        "jacobian: a result of shape {} and an argument of shape {} give more than {} dimensions; "
        "reshape them to fewer",
        result.to_string(), argument.to_string(), kMaxRank));
  }
  Shape shape = result;
  for (std::int64_t extent : argument) shape.push_back(extent);
  return shape;
}

}  // namespace

LazyTensor jacobian(const UnaryFunction& function, const LazyTensor& x, JacobianMode mode) {
  check_floating(x, "argument");
  const TraceScope scope;
  const LazyTensor at = scope.traced({&x, 1})[0];
  const LazyTensor result = function(at);
  check_floating(result, "result");
  const Shape shape = joined(result.shape(), at.shape());
  if (mode == JacobianMode::smaller) {
    mode = result.numel() < at.numel() ? JacobianMode::reverse : JacobianMode::forward;
  }
  if (mode == JacobianMode::reverse) {
    const UnaryFunction row = [&](const LazyTensor& cotangent) {
      return vjp({&result, 1}, {&at, 1}, {&cotangent, 1})[0];
    };
    return reshape(vmap(row)(basis_of(result)), shape);
  }
  const UnaryFunction column = [&](const LazyTensor& tangent) {
    return jvp({&result, 1}, {&at, 1}, {&tangent, 1})[0];
  };
  return reshape(vmap(column, 0, -1)(basis_of(at)), shape);
}

UnaryFunction jacobian(UnaryFunction function, JacobianMode mode) {
  return [function = std::move(function), mode](const LazyTensor& x) { return jacobian(function, x, mode); };
}

LazyTensor hessian(const UnaryFunction& function, const LazyTensor& x) {
  const UnaryFunction gradient = [&](const LazyTensor& at) {
    return value_and_grad([&](std::span<const LazyTensor> a) { return function(a[0]); }, {&at, 1}).second[0];
  };
  return jacobian(gradient, x, JacobianMode::forward);
}

UnaryFunction hessian(UnaryFunction function) {
  return [function = std::move(function)](const LazyTensor& x) { return hessian(function, x); };
}

}  // namespace caldera
