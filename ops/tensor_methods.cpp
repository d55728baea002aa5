// The members of LazyTensor that are operations.
#include <fmt/core.h>

#include <array>

#include "engine/graph/transfer.h"
#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/index/at.h"
#include "ops/index/subscript.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/activations.h"
#include "ops/nn/lora.h"
#include "ops/nn/normalization.h"
#include "ops/nn/softmax.h"
#include "ops/reduce/cumulative.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/mean.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/manipulation.h"

namespace caldera {

LazyTensor LazyTensor::pow(const LazyTensor& exponent) const { return caldera::pow(*this, exponent); }
LazyTensor LazyTensor::exp() const { return caldera::exp(*this); }
LazyTensor LazyTensor::log() const { return caldera::log(*this); }
LazyTensor LazyTensor::sqrt() const { return caldera::sqrt(*this); }
LazyTensor LazyTensor::rsqrt() const { return caldera::rsqrt(*this); }
LazyTensor LazyTensor::reciprocal() const { return caldera::reciprocal(*this); }
LazyTensor LazyTensor::square() const { return caldera::square(*this); }
LazyTensor LazyTensor::abs() const { return caldera::abs(*this); }
LazyTensor LazyTensor::sin() const { return caldera::sin(*this); }
LazyTensor LazyTensor::cos() const { return caldera::cos(*this); }
LazyTensor LazyTensor::tanh() const { return caldera::tanh(*this); }
LazyTensor LazyTensor::sigmoid() const { return caldera::sigmoid(*this); }
LazyTensor LazyTensor::relu() const { return caldera::relu(*this); }
LazyTensor LazyTensor::clamp(const std::optional<LazyTensor>& low,
                             const std::optional<LazyTensor>& high) const {
  return clip(*this, low, high);
}

LazyTensor LazyTensor::sum(const Axes& axes, bool keepdims) const {
  return caldera::sum(*this, axes, keepdims);
}
LazyTensor LazyTensor::mean(const Axes& axes, bool keepdims) const {
  return caldera::mean(*this, axes, keepdims);
}
LazyTensor LazyTensor::prod(const Axes& axes, bool keepdims) const {
  return caldera::prod(*this, axes, keepdims);
}
LazyTensor LazyTensor::max(const Axes& axes, bool keepdims) const {
  return caldera::max(*this, axes, keepdims);
}
LazyTensor LazyTensor::min(const Axes& axes, bool keepdims) const {
  return caldera::min(*this, axes, keepdims);
}
LazyTensor LazyTensor::any(const Axes& axes, bool keepdims) const {
  return caldera::any(*this, axes, keepdims);
}
LazyTensor LazyTensor::all(const Axes& axes, bool keepdims) const {
  return caldera::all(*this, axes, keepdims);
}
LazyTensor LazyTensor::var(const Axes& axes, double correction, bool keepdims) const {
  return caldera::var(*this, axes, correction, keepdims);
}
LazyTensor LazyTensor::std(const Axes& axes, double correction, bool keepdims) const {
  return caldera::std(*this, axes, correction, keepdims);
}
LazyTensor LazyTensor::argmax(std::optional<AxisIndex> axis, bool keepdims) const {
  return caldera::argmax(*this, axis, keepdims);
}
LazyTensor LazyTensor::argmin(std::optional<AxisIndex> axis, bool keepdims) const {
  return caldera::argmin(*this, axis, keepdims);
}
LazyTensor LazyTensor::cumsum(AxisIndex axis) const { return caldera::cumsum(*this, axis); }

LazyTensor LazyTensor::reshape(const Shape& shape) const { return caldera::reshape(*this, shape); }
LazyTensor LazyTensor::flatten(AxisIndex first, AxisIndex last) const {
  return caldera::flatten(*this, first, last);
}
LazyTensor LazyTensor::permute(const std::vector<int>& axes) const { return permute_dims(*this, axes); }
LazyTensor LazyTensor::transpose() const { return caldera::transpose(*this); }
LazyTensor LazyTensor::transpose(int a, int b) const { return swapaxes(*this, a, b); }
LazyTensor LazyTensor::T() const {
  if (rank() != 2)
    throw ShapeError(
        fmt::format("T: {} is no matrix; transpose() swaps the last two axes, permute() reorders all",
                    shape().to_string()));
  return caldera::transpose(*this);
}
LazyTensor LazyTensor::unsqueeze(AxisIndex axis) const { return expand_dims(*this, axis); }
LazyTensor LazyTensor::squeeze(const Axes& axes) const { return caldera::squeeze(*this, axes); }
LazyTensor LazyTensor::broadcast_to(const Shape& shape) const { return caldera::broadcast_to(*this, shape); }

LazyTensor LazyTensor::matmul(const LazyTensor& other) const { return caldera::matmul(*this, other); }
LazyTensor LazyTensor::softmax(AxisIndex axis) const { return caldera::softmax(*this, axis); }
LazyTensor LazyTensor::log_softmax(AxisIndex axis) const { return caldera::log_softmax(*this, axis); }
LazyTensor LazyTensor::rms_norm(double eps) const { return caldera::rms_norm(*this, eps); }

LazyTensor LazyTensor::astype(DType dtype) const { return caldera::astype(*this, dtype); }
LazyTensor LazyTensor::to(DType dtype) const { return caldera::astype(*this, dtype); }
LazyTensor LazyTensor::to(Device device) const { return caldera::to(*this, device); }

LazyTensor LazyTensor::operator[](std::int64_t index) const {
  const std::array<Index, 1> entries{index};
  return ops::subscript(*this, entries);
}
LazyTensor LazyTensor::operator[](std::initializer_list<Index> entries) const {
  return ops::subscript(*this, {entries.begin(), entries.size()});
}
LazyTensor LazyTensor::operator[](const LazyTensor& indices) const { return at(*this, indices).get(); }

LazyTensor LazyTensor::add(const LazyTensor& other) const { return caldera::add(*this, other); }
LazyTensor LazyTensor::sub(const LazyTensor& other) const { return subtract(*this, other); }
LazyTensor LazyTensor::mul(const LazyTensor& other) const { return multiply(*this, other); }
LazyTensor LazyTensor::div(const LazyTensor& other) const { return divide(*this, other); }
LazyTensor LazyTensor::mul_scalar(double value) const { return multiply(*this, value); }
LazyTensor LazyTensor::lora_fused(const LazyTensor& a, const LazyTensor& b, double scale) const {
  return lora_delta(*this, a, b, scale);
}

}  // namespace caldera
