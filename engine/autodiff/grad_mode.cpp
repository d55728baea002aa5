#include "engine/autodiff/grad_mode.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/forward.h"
#include "engine/autodiff/reverse.h"
#include "engine/autodiff/trace_scope.h"
#include "engine/base/error.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/ranges.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

/// One line a message in the life of the process.
void warn_once(const std::string& message) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::scoped_lock lock(mutex);
  if (said.insert(message).second) fmt::print(stderr, "caldera: warning: {}\n", message);
}

/// The unit vector of element `i` of x's space.
LazyTensor unit(const LazyTensor& x, std::int64_t i) {
  return reshape(astype(arange(x.numel(), DType::i64, x.device()) == i, x.dtype()), x.shape());
}

Shape extents_of(const Shape& a, const Shape& b) {
  Shape shape = a;
  for (const std::int64_t extent : b) shape.push_back(extent);
  return shape;
}

/// A derivative from one column for each element of x.
LazyTensor of_columns(const LazyTensor& result, const LazyTensor& x,
                      const std::function<LazyTensor(const LazyTensor& direction)>& column) {
  if (x.numel() == 0) return zeros(extents_of(result.shape(), x.shape()), x.dtype(), x.device());
  std::vector<LazyTensor> columns;
  for (std::int64_t i = 0; i < x.numel(); ++i) columns.push_back(astype(column(unit(x, i)), x.dtype()));
  return reshape(stack(columns, -1), extents_of(result.shape(), x.shape()));
}

LazyTensor reverse(const UnaryFunction& function, const LazyTensor& x, std::string_view transform) {
  const TraceScope scope;
  const LazyTensor traced = scope.traced({&x, 1})[0];
  const LazyTensor result = function(traced);
  check_defined({&result, 1}, transform, "result");
  std::vector<LazyTensor> rows;
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    const LazyTensor along = unit(result, i);
    LazyTensor row = pull_back({&result, 1}, {&traced, 1}, {&along, 1}, transform)[0];
    rows.push_back(row.defined() ? row : zeros_like(x));
  }
  if (rows.empty()) return zeros(extents_of(result.shape(), x.shape()), x.dtype(), x.device());
  return reshape(stack(rows, 0), extents_of(result.shape(), x.shape()));
}

LazyTensor forward(const UnaryFunction& function, const LazyTensor& x, std::string_view transform) {
  const TraceScope scope;
  const LazyTensor traced = scope.traced({&x, 1})[0];
  const LazyTensor result = function(traced);
  check_defined({&result, 1}, transform, "result");
  return of_columns(result, x, [&](const LazyTensor& direction) {
    return push_forward({&result, 1}, {&traced, 1}, {&direction, 1}, transform)[0];
  });
}

double step_of(const LazyTensor& x, double asked, std::string_view transform) {
  if (asked < 0 || std::isnan(asked))
    throw ValueError(
        fmt::format("{}: a step of {}; give one above 0, or 0 for one that fits the type", transform, asked));
  if (asked > 0) return asked;
  const double rounding = x.dtype() == DType::f64 ? 0x1p-52 : x.dtype() == DType::f32 ? 0x1p-23 : 0x1p-8;
  return std::cbrt(rounding);
}

LazyTensor numeric(const UnaryFunction& function, const LazyTensor& x, double asked,
                   std::string_view transform) {
  const double step = step_of(x, asked, transform);
  const LazyTensor result = function(x);
  check_defined({&result, 1}, transform, "result");
  return of_columns(result, x, [&](const LazyTensor& direction) {
    return (function(x + step * direction) - function(x - step * direction)) / (2 * step);
  });
}

/// The mode that `automatic` stands for.
GradMode chosen(const UnaryFunction& function, const LazyTensor& x, GradMode mode) {
  if (mode != GradMode::automatic) return mode;
  if (x.numel() == 1) return GradMode::forward;
  const TraceScope scope;
  const LazyTensor result = function(scope.traced({&x, 1})[0]);
  return result.defined() && x.numel() < result.numel() ? GradMode::forward : GradMode::reverse;
}

LazyTensor derivative(const UnaryFunction& function, const LazyTensor& x, const GradOptions& options,
                      std::string_view transform) {
  check_callable(function, transform);
  check_defined({&x, 1}, transform, "argument");
  if (!is_floating(x.dtype())) {
    throw GradientError(
        fmt::format("{}: the argument of shape {} is {}; only floating tensors have derivatives", transform,
                    x.shape().to_string(), name(x.dtype())));
  }
  const GradMode mode = chosen(function, x, options.mode);
  const auto fall_back = [&](const GradientError& error, const char* to) {
    if (options.strict) throw;
    warn_once(fmt::format("{}; {} is taken instead", error.what(), to));
  };
  const auto by = [&](GradMode how) {
    return how == GradMode::forward ? forward(function, x, transform) : reverse(function, x, transform);
  };
  if (mode == GradMode::numeric) return numeric(function, x, options.step, transform);
  const GradMode other = mode == GradMode::forward ? GradMode::reverse : GradMode::forward;
  try {
    return by(mode);
  } catch (const NoTangentRule& error) {
    fall_back(error, "reverse mode");
  } catch (const NoGradientRule& error) {
    fall_back(error, "forward mode");
  }
  try {
    return by(other);
  } catch (const NoTangentRule& error) {
    fall_back(error, "a difference");
  } catch (const NoGradientRule& error) {
    fall_back(error, "a difference");
  }
  return numeric(function, x, options.step, transform);
}

void check_number(const LazyTensor& result, std::string_view transform) {
  if (result.rank() == 0 || result.numel() == 1) return;
  throw GradientError(fmt::format("{}: the result has shape {}; a gradient is of one number", transform,
                                  result.shape().to_string()));
}

}  // namespace

std::vector<LazyTensor> grad(const TensorFunction& function, std::span<const LazyTensor> arguments,
                             const GradOptions& options) {
  check_callable(function, "grad");
  check_defined(arguments, "grad", "argument");
  const FloatingTensors varied(arguments, "grad");
  std::vector<LazyTensor> grads;
  for (const std::size_t i : varied.positions) {
    const UnaryFunction of_one = [&](const LazyTensor& x) {
      std::vector<LazyTensor> all(arguments.begin(), arguments.end());
      all[i] = x;
      LazyTensor result = function(all);
      check_defined({&result, 1}, "grad", "result");
      check_number(result, "grad");
      return reshape(result, Shape{});
    };
    grads.push_back(derivative(of_one, arguments[i], options, "grad"));
  }
  return varied.spread(grads, arguments.size());
}

LazyTensor grad(const UnaryFunction& function, const LazyTensor& x, const GradOptions& options) {
  check_callable(function, "grad");
  return grad(as_tensor_function(function), std::span(&x, 1), options)[0];
}

LazyTensor jacobian(const UnaryFunction& function, const LazyTensor& x, const GradOptions& options) {
  return derivative(function, x, options, "jacobian");
}

LazyTensor hessian(const UnaryFunction& function, const LazyTensor& x, const GradOptions& options) {
  check_callable(function, "hessian");
  const UnaryFunction gradient = [&](const LazyTensor& at) {
    return value_and_gradients(as_tensor_function(function), std::span(&at, 1), "hessian").second[0];
  };
  GradOptions outer = options;
  if (outer.mode == GradMode::automatic) outer.mode = GradMode::forward;
  return derivative(gradient, x, outer, "hessian");
}

}  // namespace caldera
