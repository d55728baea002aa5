// What transforms are given, by their callers and by rules: checked, and brought to the tensors that it
// belongs to. Internal to the transforms.
#pragma once

#include <fmt/core.h>

#include <span>
#include <string_view>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Throws ValueError naming `transform` if `function` (a std::function) is empty.
template <class Function>
void check_callable(const Function& function, std::string_view transform) {
  if (function) return;
  throw ValueError(fmt::format("{}: the function is empty; give one that can be called", transform));
}

/// Throws ValueError naming `transform`, `what` ("argument") and the position if one of `tensors` is empty.
void check_defined(std::span<const LazyTensor> tensors, std::string_view transform, std::string_view what);

/// The floating ones among the arguments of a function: those that have derivatives.
struct FloatingTensors {
  std::vector<std::size_t> positions;
  std::vector<LazyTensor> tensors;

  /// Throws GradientError naming `transform` if there are arguments, and none is floating.
  FloatingTensors(std::span<const LazyTensor> arguments, std::string_view transform);

  /// One of `each` at the position of each floating tensor, empty tensors at those of the others.
  std::vector<LazyTensor> spread(std::span<const LazyTensor> each, std::size_t count) const;
};

/// Throws DeviceError if `given`, which `source` names ("vjp: cotangent 0"), lies on another device than
/// `value`, which `target` names ("output 0"). Bare numbers fit every device.
void check_device(const LazyTensor& given, const LazyTensor& value, std::string_view source,
                  std::string_view target);

/// A bare number as a tensor on the device of `like`, of the dtype that it has beside `like`. Anything else
/// as it is.
LazyTensor placed_beside(const LazyTensor& x, const LazyTensor& like);

/// `given` as a derivative of `value`: a tensor of its dtype on its device. Throws ShapeError if it has
/// another shape (naming both), and DeviceError as check_device.
LazyTensor derivative_of(const LazyTensor& value, const LazyTensor& given, std::string_view source,
                         std::string_view target);

}  // namespace caldera
