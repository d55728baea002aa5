#include "engine/autodiff/jacobian/jacobian.h"

#include <string_view>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/forward.h"
#include "engine/autodiff/jacobian/derivative_table.h"
#include "engine/autodiff/reverse.h"
#include "engine/autodiff/trace_scope.h"

namespace caldera {
namespace {

using Table = DerivativeTable::Blocks;

DerivativeTable::Blocks blocks_of(const DerivativeTable& table, JacobianMode mode) {
  if (mode == JacobianMode::reverse) return table.by_rows();
  if (mode == JacobianMode::forward) return table.by_columns();
  if (table.rows() < table.columns()) return table.by_rows();
  try {
    return table.by_columns();
  } catch (const NoTangentRule&) {
    return table.by_rows();
  }
}

Table jacobian_of(const VectorFunction& function, std::span<const LazyTensor> arguments, JacobianMode mode,
                  std::string_view transform) {
  check_callable(function, transform);
  check_defined(arguments, transform, "argument");
  const TraceScope scope;
  const std::vector<LazyTensor> traced = scope.traced(arguments);
  const FloatingTensors varied(traced, transform);
  const std::vector<LazyTensor> results = function(traced);
  check_defined(results, transform, "result");
  Table table = blocks_of(DerivativeTable(results, varied.tensors, transform), mode);
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
