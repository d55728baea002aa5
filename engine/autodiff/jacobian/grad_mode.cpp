#include "engine/autodiff/jacobian/grad_mode.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/forward.h"
#include "engine/autodiff/jacobian/derivative_table.h"
#include "engine/autodiff/reverse.h"
#include "engine/autodiff/trace_scope.h"
#include "engine/base/error.h"
#include "ops/core/arithmetic.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

/// One line a message in the life of the process.
void warn_once(const std::string& message) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::scoped_lock lock(mutex);
  if (said.insert(message).second) fmt::print(stderr, "caldera: warning: {}\n", message);
}

double step_of(const LazyTensor& x, double asked) {
  if (asked > 0) return asked;
  const double rounding = x.dtype() == DType::f64 ? 0x1p-52 : x.dtype() == DType::f32 ? 0x1p-23 : 0x1p-8;
  return std::cbrt(rounding);
}

using Blocks = DerivativeTable::Blocks;

/// By the chain rule, of one call of the function; none where operations have rules for neither mode.
Blocks by_rules(const VectorFunction& function, std::span<const LazyTensor> arguments,
                const GradOptions& options, std::string_view transform) {
  const TraceScope scope;
  const std::vector<LazyTensor> traced = scope.traced(arguments);
  const FloatingTensors varied(traced, transform);
  const std::vector<LazyTensor> results = function(traced);
  check_defined(results, transform, "result");
  const DerivativeTable table(results, varied.tensors, transform);
  GradMode mode = options.mode;
  if (mode == GradMode::automatic) {
    const bool is_narrow = table.columns() == 1 || table.columns() < table.rows();
    mode = is_narrow ? GradMode::forward : GradMode::reverse;
  }
  // Called where an error is being handled.
  const auto fall_back = [&](const GradientError& error, const char* instead) {
    if (options.strict) throw;
    warn_once(fmt::format("{}; {} is taken instead", error.what(), instead));
    return Blocks();
  };
  const auto by = [&](bool is_forward, const char* instead) {
    try {
      return is_forward ? table.by_columns() : table.by_rows();
    } catch (const NoTangentRule& error) {
      return fall_back(error, instead);
    } catch (const NoGradientRule& error) {
      return fall_back(error, instead);
    }
  };
  const bool is_forward = mode == GradMode::forward;
  Blocks blocks = by(is_forward, is_forward ? "reverse mode" : "forward mode");
  return blocks.empty() ? by(!is_forward, "a difference") : blocks;
}

Blocks by_differences(const VectorFunction& function, std::span<const LazyTensor> arguments, double asked,
                      std::string_view transform) {
  if (asked < 0 || std::isnan(asked))
    throw ValueError(
        fmt::format("{}: a step of {}; give one above 0, or 0 for one that fits the type", transform, asked));
  const FloatingTensors varied(arguments, transform);
  const std::vector<LazyTensor> results = function(arguments);
  check_defined(results, transform, "result");
  const DerivativeTable table(results, varied.tensors, transform);
  return table.of_columns([&](std::size_t i, const LazyTensor& direction) {
    const LazyTensor& x = varied.tensors[i];
    const double step = step_of(x, asked);
    std::vector<LazyTensor> at(arguments.begin(), arguments.end());
    at[varied.positions[i]] = x + step * direction;
    std::vector<LazyTensor> slopes = function(at);
    at[varied.positions[i]] = x - step * direction;
    const std::vector<LazyTensor> below = function(at);
    for (std::size_t k = 0; k < slopes.size(); ++k) slopes[k] = (slopes[k] - below[k]) / (2 * step);
    return slopes;
  });
}

/// A block for each result and each floating argument.
Blocks derivatives(const VectorFunction& function, std::span<const LazyTensor> arguments,
                   const GradOptions& options, std::string_view transform) {
  check_defined(arguments, transform, "argument");
  Blocks blocks;
  if (options.mode != GradMode::numeric) blocks = by_rules(function, arguments, options, transform);
  return blocks.empty() ? by_differences(function, arguments, options.step, transform) : blocks;
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
  const VectorFunction number = [&](std::span<const LazyTensor> all) {
    const LazyTensor result = function(all);
    check_defined({&result, 1}, "grad", "result");
    check_number(result, "grad");
    return std::vector{reshape(result, Shape{})};
  };
  const Blocks blocks = derivatives(number, arguments, options, "grad");
  return FloatingTensors(arguments, "grad").spread(blocks[0], arguments.size());
}

LazyTensor grad(const UnaryFunction& function, const LazyTensor& x, const GradOptions& options) {
  return grad(as_tensor_function(function), std::span(&x, 1), options)[0];
}

LazyTensor jacobian(const UnaryFunction& function, const LazyTensor& x, const GradOptions& options) {
  check_callable(function, "jacobian");
  const VectorFunction of_list = as_vector_function(as_tensor_function(function));
  return derivatives(of_list, {&x, 1}, options, "jacobian")[0][0];
}

LazyTensor hessian(const UnaryFunction& function, const LazyTensor& x, const GradOptions& options) {
  check_callable(function, "hessian");
  const VectorFunction gradient = [&](std::span<const LazyTensor> at) {
    return value_and_gradients(as_tensor_function(function), at, "hessian").second;
  };
  GradOptions outer = options;
  if (outer.mode == GradMode::automatic) outer.mode = GradMode::forward;
  return derivatives(gradient, {&x, 1}, outer, "hessian")[0][0];
}

}  // namespace caldera
