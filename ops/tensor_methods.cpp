// The member shorthands of LazyTensor.
#include "ops/ops.h"

namespace caldera {

LazyTensor LazyTensor::add(const LazyTensor& other) const { return caldera::add(*this, other); }
LazyTensor LazyTensor::sub(const LazyTensor& other) const { return subtract(*this, other); }
LazyTensor LazyTensor::mul(const LazyTensor& other) const { return multiply(*this, other); }
LazyTensor LazyTensor::div(const LazyTensor& other) const { return divide(*this, other); }
LazyTensor LazyTensor::mul_scalar(double value) const { return multiply(*this, value); }
LazyTensor LazyTensor::matmul(const LazyTensor& other) const { return caldera::matmul(*this, other); }
LazyTensor LazyTensor::reshape(const Shape& shape) const { return caldera::reshape(*this, shape); }
LazyTensor LazyTensor::transpose() const { return caldera::transpose(*this); }
LazyTensor LazyTensor::astype(DType dtype) const { return caldera::astype(*this, dtype); }
LazyTensor LazyTensor::to(Device device) const { return caldera::to(*this, device); }
LazyTensor LazyTensor::softmax(int axis) const { return caldera::softmax(*this, axis); }
LazyTensor LazyTensor::rms_norm(double eps) const { return caldera::rms_norm(*this, eps); }
LazyTensor LazyTensor::lora_fused(const LazyTensor& a, const LazyTensor& b, double scale) const {
  return lora_delta(*this, a, b, scale);
}

}  // namespace caldera
