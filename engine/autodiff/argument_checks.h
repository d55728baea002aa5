// Checks what callers and rules give to a transform, and converts it to the dtype and the device that it must
// have there. Internal to the transforms.
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

/// Picks the floating ones among the arguments of a function: those that have derivatives.
struct FloatingTensors {
  std::vector<std::size_t> positions;
  std::vector<LazyTensor> tensors;

  /// Throws GradientError naming `transform` if there are arguments, and none is floating.
  FloatingTensors(std::span<const LazyTensor> arguments, std::string_view transform);

  /// Returns a list of `count` tensors: each[k] at positions[k], and empty tensors elsewhere.
  std::vector<LazyTensor> spread(std::span<const LazyTensor> each, std::size_t count) const;
};

/// Throws DeviceError if `given`, which `source` names ("vjp: cotangent 0"), is on another device than
/// `value`, which `target` names ("output 0"). Bare numbers fit every device.
void check_device(const LazyTensor& given, const LazyTensor& value, std::string_view source,
                  std::string_view target);

/// Makes a bare number a tensor on the device of `like`, with the dtype that promotion with `like` gives it.
/// Returns anything else as it is.
LazyTensor placed_like(const LazyTensor& x, const LazyTensor& like);

/// Converts `given`, a derivative of `value`, to a tensor of the dtype and on the device of `value`. Throws
/// ShapeError if the shapes differ (naming both), and DeviceError as check_device does.
LazyTensor derivative_of(const LazyTensor& value, const LazyTensor& given, std::string_view source,
                         std::string_view target);

}  // namespace caldera
