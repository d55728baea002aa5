#include "ops/loss/loss_operands.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "ops/core/cast.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/sum.h"
#include "ops/loss/reduction.h"
#include "ops/reduce/mean.h"

namespace caldera::ops {

LossOperands::LossOperands(const char* op, std::initializer_list<LazyTensor> operands,
                           std::initializer_list<LazyTensor> others)
    : op_(op), operands_(operands) {
  const auto is_number = [](const LazyTensor& x) { return x.node().is_scalar_leaf(); };
  const auto tensor = std::ranges::find_if_not(operands_, is_number);
  device_ = tensor == operands_.end() ? device_of(others) : tensor->device();
  std::optional<DType> type;
  for (const LazyTensor& x : operands_) {
    const DType own = tensor == operands_.end() ? x.dtype() : dtype_beside(x, *tensor);
    check_domain(op, ScalarDomain::floating, own);
    type = type ? promote(*type, own) : own;
    shape_ = broadcast_shapes(shape_, x.shape(), op);
  }
  type_ = type.value();
  for (LazyTensor& x : operands_) x = anchored(as_operand(x, compute_type(type_)), device_);
}

LazyTensor LossOperands::beside(const LazyTensor& x, std::string_view what) const {
  if (!x.defined()) return x;
  if (!is_floating(x.dtype()) && !is_integral(x.dtype()))
    throw DTypeError(
        fmt::format("{}: {} is {}; convert it to a number with astype()", op_, what, name(x.dtype())));
  if (broadcast_shapes(shape_, x.shape(), op_) != shape_)
    throw ShapeError(fmt::format("{}: {} {} does not broadcast to {}", op_, what, x.shape().to_string(),
                                 shape_.to_string()));
  return anchored(as_operand(x, compute_type(type_)), device_);
}

LazyTensor LossOperands::reduced(const LazyTensor& losses, Reduction reduction) const {
  return astype(ops::reduced(losses, reduction), type_);
}

LazyTensor reduced(const LazyTensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean:
      return mean(losses);
    case Reduction::sum:
      return sum(losses);
    case Reduction::none:
      return losses;
    case Reduction::batchmean:
      return losses.rank() == 0 ? losses : sum(losses) / static_cast<double>(losses.shape(0));
  }
  throw ValueError("a loss: no such reduction");
}

}  // namespace caldera::ops
