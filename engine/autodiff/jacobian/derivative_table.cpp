#include "engine/autodiff/jacobian/derivative_table.h"

#include <fmt/core.h>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/batching.h"
#include "engine/autodiff/forward.h"
#include "engine/autodiff/reverse.h"
#include "engine/autodiff/vmap.h"
#include "engine/base/error.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/ranges.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"

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

/// The unit vector of element `i`.
LazyTensor unit(const LazyTensor& x, std::int64_t i) {
  return reshape(astype(arange(x.numel(), DType::i64, x.device()) == i, x.dtype()), x.shape());
}

/// What the function gives for each of the unit vectors, along `axis`.
std::vector<LazyTensor> one_by_one(const VectorFunction& function, const LazyTensor& x, int axis) {
  std::vector<std::vector<LazyTensor>> each;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const LazyTensor direction = unit(x, i);
    const std::vector<LazyTensor> gave = function({&direction, 1});
    each.resize(gave.size());
    for (std::size_t k = 0; k < gave.size(); ++k) each[k].push_back(placed_like(gave[k], x));
  }
  std::vector<LazyTensor> out;
  out.reserve(each.size());
  for (const std::vector<LazyTensor>& of : each) out.push_back(stack(of, axis));
  return out;
}

std::vector<LazyTensor> all_at_once(const VectorFunction& function, const LazyTensor& x, int axis) {
  if (x.numel() == 1) return one_by_one(function, x, axis);
  const LazyTensor basis = basis_of(x);
  try {
    return vmap(function, 0, axis)({&basis, 1});
  } catch (const NoBatchingRule&) {
    return one_by_one(function, x, axis);
  }
}

std::int64_t elements_of(std::span<const LazyTensor> tensors) {
  std::int64_t count = 0;
  for (const LazyTensor& x : tensors) count += x.numel();
  return count;
}

}  // namespace

DerivativeTable::DerivativeTable(std::span<const LazyTensor> results, std::span<const LazyTensor> variables,
                                 std::string_view transform)
    : results_(results), variables_(variables), transform_(transform) {
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (is_floating(results[k].dtype())) continue;
    throw GradientError(fmt::format("{}: result {} of shape {} is {}; only floating tensors have derivatives",
                                    transform, k, results[k].shape().to_string(), name(results[k].dtype())));
  }
  for (const LazyTensor& result : results) {
    for (const LazyTensor& x : variables) shape_of(result, x);
  }
}

std::int64_t DerivativeTable::rows() const { return elements_of(results_); }
std::int64_t DerivativeTable::columns() const { return elements_of(variables_); }

Shape DerivativeTable::shape_of(const LazyTensor& result, const LazyTensor& x) const {
  if (result.rank() + x.rank() > kMaxRank) {
    throw ShapeError(
        fmt::format("{}: a result of shape {} and an argument of shape {} give more than {} dimensions; "
                    "reshape them to fewer",
                    transform_, result.shape().to_string(), x.shape().to_string(), kMaxRank));
  }
  Shape shape = result.shape();
  for (const std::int64_t extent : x.shape()) shape.push_back(extent);
  return shape;
}

DerivativeTable::Blocks DerivativeTable::by_rows() const {
  Blocks blocks;
  for (const LazyTensor& result : results_) {
    const VectorFunction row = [&](std::span<const LazyTensor> cotangent) {
      std::vector<LazyTensor> grads = pull_back({&result, 1}, variables_, cotangent, transform_);
      for (std::size_t i = 0; i < grads.size(); ++i) {
        if (!grads[i].defined()) grads[i] = zeros_like(variables_[i]);
      }
      return grads;
    };
    blocks.emplace_back(variables_.size());
    std::vector<LazyTensor> rows;
    if (result.numel() > 0) rows = all_at_once(row, result, 0);
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const LazyTensor& x = variables_[i];
      blocks.back()[i] = rows.empty() ? zeros(shape_of(result, x), x.dtype(), x.device())
                                      : reshape(rows[i], shape_of(result, x));
    }
  }
  return blocks;
}

DerivativeTable::Blocks DerivativeTable::by_columns() const {
  const auto column = [&](std::size_t i, const LazyTensor& direction) {
    return push_forward(results_, {&variables_[i], 1}, {&direction, 1}, transform_);
  };
  return of_columns(column, Along::all_at_once);
}

DerivativeTable::Blocks DerivativeTable::of_columns(const Column& column) const {
  return of_columns(column, Along::one_by_one);
}

DerivativeTable::Blocks DerivativeTable::of_columns(const Column& column, Along how) const {
  Blocks blocks(results_.size(), std::vector<LazyTensor>(variables_.size()));
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const LazyTensor& x = variables_[i];
    const VectorFunction along = [&](std::span<const LazyTensor> direction) {
      return column(i, direction[0]);
    };
    std::vector<LazyTensor> columns;
    if (x.numel() > 0)
      columns = how == Along::all_at_once ? all_at_once(along, x, -1) : one_by_one(along, x, -1);
    for (std::size_t k = 0; k < results_.size(); ++k) {
      const Shape shape = shape_of(results_[k], x);
      blocks[k][i] = columns.empty() ? zeros(shape, x.dtype(), x.device())
                                     : reshape(astype(columns[k], x.dtype()), shape);
    }
  }
  return blocks;
}

}  // namespace caldera
