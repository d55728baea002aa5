#include "engine/autodiff/argument_checks.h"

#include "ops/core/cast.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"

namespace caldera {

void check_defined(std::span<const LazyTensor> tensors, std::string_view transform, std::string_view what) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].defined()) continue;
    throw ValueError(
        fmt::format("{}: {} {} is an empty LazyTensor; assign a tensor to it", transform, what, i));
  }
}

FloatingTensors::FloatingTensors(std::span<const LazyTensor> arguments, std::string_view transform) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!is_floating(arguments[i].dtype())) continue;
    positions.push_back(i);
    tensors.push_back(arguments[i]);
  }
  if (!tensors.empty() || arguments.empty()) return;
  throw GradientError(
      fmt::format("{}: no argument is floating (argument 0 of shape {} is {}); only floating tensors have "
                  "derivatives",
                  transform, arguments[0].shape().to_string(), name(arguments[0].dtype())));
}

std::vector<LazyTensor> FloatingTensors::spread(std::span<const LazyTensor> each, std::size_t count) const {
  std::vector<LazyTensor> all(count);
  for (std::size_t k = 0; k < positions.size(); ++k) all[positions[k]] = each[k];
  return all;
}

void check_device(const LazyTensor& given, const LazyTensor& value, std::string_view source,
                  std::string_view target) {
  if (given.node().is_scalar_leaf() || value.node().is_scalar_leaf()) return;
  if (given.device() == value.device()) return;
  throw DeviceError(fmt::format("{} is on {}, {} is on {}; move it with to()", source,
                                given.device().to_string(), target, value.device().to_string()));
}

LazyTensor placed_like(const LazyTensor& x, const LazyTensor& like) {
  if (!x.node().is_scalar_leaf()) return x;
  const DType dtype = ops::dtype_beside(x, like);
  return LazyTensor::zeros(Shape{}, dtype, like.device()) + ops::as_operand(x, dtype);
}

LazyTensor derivative_of(const LazyTensor& value, const LazyTensor& given, std::string_view source,
                         std::string_view target) {
  if (given.shape() != value.shape()) {
    throw ShapeError(fmt::format("{} has shape {}, {} has {}", source, given.shape().to_string(), target,
                                 value.shape().to_string()));
  }
  check_device(given, value, source, target);
  return astype(placed_like(given, value), value.dtype());
}

}  // namespace caldera
