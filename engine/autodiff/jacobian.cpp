#include "engine/autodiff/jacobian.h"

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/forward.h"
#include "engine/autodiff/reverse.h"
#include "engine/autodiff/trace_scope.h"
#include "engine/autodiff/vmap.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/ranges.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

using Table = std::vector<std::vector<LazyTensor>>;

/// The unit vectors of the space that `x` is in, one after the other along axis 0.
LazyTensor basis_of(const LazyTensor& x) {
  const std::int64_t count = x.numel();
  const LazyTensor which = arange(count, DType::i32, x.device());
  Shape shape = x.shape();
  shape.insert(0, count);
  return reshape(astype(expand_dims(which, 1) == which, x.dtype()), shape);
}

std::int64_t elements_of(std::span<const LazyTensor> tensors) {
  std::int64_t count = 0;
  for (const LazyTensor& x : tensors) count += x.numel();
  return count;
}

/// The Jacobian of results that are there, on behalf of `transform`.
class JacobianTable {
 public:
  JacobianTable(std::span<const LazyTensor> results, std::span<const LazyTensor> variables,
                std::string_view transform)
      : results_(results), variables_(variables), transform_(transform) {
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (is_floating(results[k].dtype())) continue;
      throw GradientError(
          fmt::format("{}: result {} of shape {} is {}; only floating tensors have derivatives", transform, k,
                      results[k].shape().to_string(), name(results[k].dtype())));
    }
    for (const LazyTensor& result : results) {
      for (const LazyTensor& x : variables) shape_of(result, x);
    }
  }

  Table by(JacobianMode mode) const {
    if (mode == JacobianMode::reverse) return by_rows();
    if (mode == JacobianMode::forward) return by_columns();
    if (elements_of(results_) < elements_of(variables_)) return by_rows();
    try {
      return by_columns();
    } catch (const NoTangentRule&) {
      return by_rows();
    }
  }

 private:
  Shape shape_of(const LazyTensor& result, const LazyTensor& x) const {
    if (result.rank() + x.rank() > kMaxRank) {
      throw ShapeError(
          fmt::format("{}: a result of shape {} and an argument of shape {} give more than {} dimensions; "
                      "reshape them to fewer",
                      transform_, result.shape().to_string(), x.shape().to_string(), kMaxRank));
    }
    Shape shape = result.shape();
    for (std::int64_t extent : x.shape()) shape.push_back(extent);
    return shape;
  }

  Table by_rows() const {
    Table table;
    for (const LazyTensor& result : results_) {
      const VectorFunction row = [&](std::span<const LazyTensor> cotangent) {
        std::vector<LazyTensor> grads = pull_back({&result, 1}, variables_, cotangent, transform_);
        for (std::size_t i = 0; i < grads.size(); ++i) {
          if (!grads[i].defined()) grads[i] = zeros_like(variables_[i]);
        }
        return grads;
      };
      const LazyTensor basis = basis_of(result);
      table.push_back(vmap(row)({&basis, 1}));
      for (std::size_t i = 0; i < variables_.size(); ++i) {
        table.back()[i] = reshape(table.back()[i], shape_of(result, variables_[i]));
      }
    }
    return table;
  }

  Table by_columns() const {
    Table table(results_.size(), std::vector<LazyTensor>(variables_.size()));
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const LazyTensor& x = variables_[i];
      const VectorFunction column = [&](std::span<const LazyTensor> tangent) {
        return push_forward(results_, {&x, 1}, tangent, transform_);
      };
      const LazyTensor basis = basis_of(x);
      const std::vector<LazyTensor> columns = vmap(column, 0, -1)({&basis, 1});
      for (std::size_t k = 0; k < results_.size(); ++k) {
        table[k][i] = reshape(astype(columns[k], x.dtype()), shape_of(results_[k], x));
      }
    }
    return table;
  }

  std::span<const LazyTensor> results_, variables_;
  std::string_view transform_;
};

Table jacobian_of(const VectorFunction& function, std::span<const LazyTensor> arguments, JacobianMode mode,
                  std::string_view transform) {
  check_callable(function, transform);
  check_defined(arguments, transform, "argument");
  const TraceScope scope;
  const std::vector<LazyTensor> traced = scope.traced(arguments);
  const FloatingTensors varied(traced, transform);
  const std::vector<LazyTensor> results = function(traced);
  check_defined(results, transform, "result");
  Table table = JacobianTable(results, varied.tensors, transform).by(mode);
  for (std::vector<LazyTensor>& row : table) row = varied.spread(row, arguments.size());
  return table;
}

}  // namespace

LazyTensor jacobian(const UnaryFunction& function, const LazyTensor& x, JacobianMode mode) {
  const VectorFunction of_list = as_vector_function(as_tensor_function(function));
  return jacobian_of(of_list, {&x, 1}, mode, "jacobian")[0][0];
}

UnaryFunction jacobian(UnaryFunction function, JacobianMode mode) {
  check_callable(function, "jacobian");
  return [function = std::move(function), mode](const LazyTensor& x) { return jacobian(function, x, mode); };
}

Table jacobian(const VectorFunction& function, std::span<const LazyTensor> arguments, JacobianMode mode) {
  return jacobian_of(function, arguments, mode, "jacobian");
}

Table hessian(const TensorFunction& function, std::span<const LazyTensor> arguments) {
  check_callable(function, "hessian");
  check_defined(arguments, "hessian", "argument");
  const FloatingTensors varied(arguments, "hessian");
  const VectorFunction gradients = [&](std::span<const LazyTensor> at) {
    return value_and_gradients(function, at, "hessian").second;
  };
  Table of_floating = jacobian_of(gradients, arguments, JacobianMode::smaller, "hessian");
  Table table(arguments.size(), std::vector<LazyTensor>(arguments.size()));
  for (std::size_t i = 0; i < of_floating.size(); ++i) table[varied.positions[i]] = std::move(of_floating[i]);
  return table;
}

LazyTensor hessian(const UnaryFunction& function, const LazyTensor& x) {
  return hessian(as_tensor_function(function), {&x, 1})[0][0];
}

UnaryFunction hessian(UnaryFunction function) {
  check_callable(function, "hessian");
  return [function = std::move(function)](const LazyTensor& x) { return hessian(function, x); };
}

}  // namespace caldera
