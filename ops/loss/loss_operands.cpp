#include "ops/loss/loss_operands.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "ops/core/node_builder.h"

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

Reduction reduction_of(const Arguments& arguments) {
  const std::string text = arguments.text("reduction", "mean");
  if (text == "mean") return Reduction::mean;
  if (text == "sum") return Reduction::sum;
  if (text == "none") return Reduction::none;
  if (text == "batchmean") return Reduction::batchmean;
  throw ValueError(fmt::format("reduction is '{}'; want mean, sum, none or batchmean", text));
}

namespace {

Sample pair(const Operation& op, const Shape& a, const Shape& b, Arguments arguments, const char* reduction) {
  if (std::string_view(reduction) != "mean") arguments.set("reduction", std::string(reduction));
  return {{{a, op.ranges[0]}, {b, op.ranges[1]}}, std::move(arguments)};
}

}  // namespace

std::vector<Sample> unbroadcast_loss_samples(const Operation& op, const std::vector<Arguments>& variants) {
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{33}, Shape{}, Shape{1}, Shape{2, 3, 4}})
    out.push_back(pair(op, shape, shape, {}, "mean"));
  for (const char* reduction : {"sum", "none", "batchmean"})
    out.push_back(pair(op, {2, 3}, {2, 3}, {}, reduction));
  for (const char* reduction : {"none", "sum"}) out.push_back(pair(op, {0, 3}, {0, 3}, {}, reduction));
  for (const Arguments& variant : variants) {
    out.push_back(pair(op, {7}, {7}, variant, "mean"));
    out.push_back(pair(op, {3, 5}, {3, 5}, variant, "sum"));
    out.push_back(pair(op, {2, 1, 5}, {2, 1, 5}, variant, "none"));
  }
  return out;
}

std::vector<Sample> loss_samples(const Operation& op, const std::vector<Arguments>& variants) {
  std::vector<Sample> out = unbroadcast_loss_samples(op, variants);
  out.push_back(pair(op, {2, 3}, {3}, {}, "mean"));
  out.push_back(pair(op, {2, 1}, {1, 3}, {}, "none"));
  out.push_back(pair(op, {}, {7}, {}, "sum"));
  return out;
}

std::vector<ErrorSample> loss_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4}}}, .mentions = "(2, 3)"},
          {.refusal = Refusal::shape, .operands = {{{0}}, {{2}}}, .mentions = "(0,)"}};
}

}  // namespace caldera::ops
