// Carries: what goes round from turn to turn, checked. Internal to engine/control.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The device of the first that is a tensor; the default device if all are numbers.
Device device_among(std::span<const LazyTensor> tensors, std::span<const LazyTensor> others = {});

/// The carries to begin with, numbers among them as tensors, on the device of `over` or of the first tensor.
/// Throws ValueError naming `title` where there are none, or one is empty.
std::vector<LazyTensor> first_carries(std::span<const LazyTensor> init, std::span<const LazyTensor> over,
                                      std::string_view title);

/// Checks what a turn gave, and returns it. Numbers become tensors like those of `before`. Throws ValueError
/// for another number of carries, ShapeError or DTypeError for one that has changed.
std::vector<LazyTensor> carries_after(std::vector<LazyTensor> given, std::span<const LazyTensor> before,
                                      std::string_view title);

}  // namespace caldera
