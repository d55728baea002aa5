#include "ops/signal/complex_tensor.h"

#include <fmt/core.h>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/linalg/matmul.h"
#include "ops/reduce/mean.h"
#include "ops/shape/joining.h"
#include "ops/shape/manipulation.h"

namespace caldera {
namespace {

/// f of both parts.
template <class F>
ComplexTensor by_parts(const ComplexTensor& x, const F& f) {
  return {f(x.real()), f(x.imag())};
}

}  // namespace

ComplexTensor::ComplexTensor(const LazyTensor& real, const LazyTensor& imag) : real_(real), imag_(imag) {
  const bool numbers = ops::is_scalar_leaf(real) && ops::is_scalar_leaf(imag);
  const DType type = promote(ops::dtype_beside(real, imag), ops::dtype_beside(imag, real));
  if (real.shape() == imag.shape() && real.dtype() == imag.dtype() &&
      (numbers || (!ops::is_scalar_leaf(real) && !ops::is_scalar_leaf(imag))))
    return;
  const Shape shape = broadcast_shapes(real.shape(), imag.shape(), "ComplexTensor");
  const Device device = ops::device_of({real, imag});
  const auto part = [&](const LazyTensor& x) {
    return caldera::broadcast_to(ops::anchored(ops::as_held_operand("ComplexTensor", x, type), device),
                                 shape);
  };
  real_ = part(real);
  imag_ = part(imag);
}

ComplexTensor::ComplexTensor(const LazyTensor& real) : ComplexTensor(real, zeros_like(real)) {}
ComplexTensor::ComplexTensor(std::complex<double> value) : real_(value.real()), imag_(value.imag()) {}

const ComplexTensor& ComplexTensor::eval() const {
  caldera::eval({real_, imag_});
  return *this;
}

ComplexTensor view_as_complex(const LazyTensor& x) {
  if (x.rank() == 0 || x.shape(-1) != 2)
    throw ShapeError(fmt::format("view_as_complex: {} has no last axis of 2", x.shape().to_string()));
  const int last = x.rank() - 1;
  return {squeeze(slice(x, last, 0, 1), last), squeeze(slice(x, last, 1, 2), last)};
}
LazyTensor view_as_real(const ComplexTensor& x) { return stack({x.real(), x.imag()}, -1); }
ComplexTensor from_polar(const LazyTensor& magnitude, const LazyTensor& angle) {
  const char* const op = "from_polar";
  broadcast_shapes(magnitude.shape(), angle.shape(), op);
  ops::check_domain(op, ScalarDomain::floating, ops::dtype_beside(magnitude, angle));
  ops::check_domain(op, ScalarDomain::floating, ops::dtype_beside(angle, magnitude));
  const LazyTensor given[] = {magnitude, angle};
  const std::vector<LazyTensor> x = ops::as_tensors(op, given);
  return {x[0] * cos(x[1]), x[0] * sin(x[1])};
}

LazyTensor real(const ComplexTensor& x) { return x.real(); }
LazyTensor imag(const ComplexTensor& x) { return x.imag(); }
ComplexTensor conj(const ComplexTensor& x) {
  ops::check_domain("conj", ScalarDomain::numeric, x.dtype());
  return {x.real(), -x.imag()};
}
LazyTensor angle(const ComplexTensor& x) {
  ops::check_domain("angle", ScalarDomain::floating, x.dtype());
  return atan2(x.imag(), x.real());
}

ComplexTensor operator+(const ComplexTensor& a, const ComplexTensor& b) {
  return {a.real() + b.real(), a.imag() + b.imag()};
}
ComplexTensor operator-(const ComplexTensor& a, const ComplexTensor& b) {
  return {a.real() - b.real(), a.imag() - b.imag()};
}
ComplexTensor operator*(const ComplexTensor& a, const ComplexTensor& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
ComplexTensor operator/(const ComplexTensor& a, const ComplexTensor& b) {
  // Divided by the larger part first (Smith 1962), which the result does not depend on.
  const LazyTensor largest = stop_gradient(maximum(abs(b.real()), abs(b.imag())));
  const LazyTensor scale = where(equal(largest, 0.0), ones_like(largest), largest);
  const LazyTensor c = b.real() / scale, d = b.imag() / scale, total = b.real() * c + b.imag() * d;
  return {(a.real() * c + a.imag() * d) / total, (a.imag() * c - a.real() * d) / total};
}
ComplexTensor operator-(const ComplexTensor& x) { return {-x.real(), -x.imag()}; }

ComplexTensor operator+(const ComplexTensor& a, const LazyTensor& b) { return {a.real() + b, a.imag()}; }
ComplexTensor operator+(const LazyTensor& a, const ComplexTensor& b) { return b + a; }
ComplexTensor operator-(const ComplexTensor& a, const LazyTensor& b) { return {a.real() - b, a.imag()}; }
ComplexTensor operator-(const LazyTensor& a, const ComplexTensor& b) { return {a - b.real(), -b.imag()}; }
ComplexTensor operator*(const ComplexTensor& a, const LazyTensor& b) { return {a.real() * b, a.imag() * b}; }
ComplexTensor operator*(const LazyTensor& a, const ComplexTensor& b) { return b * a; }
ComplexTensor operator/(const ComplexTensor& a, const LazyTensor& b) { return {a.real() / b, a.imag() / b}; }
ComplexTensor operator/(const LazyTensor& a, const ComplexTensor& b) { return ComplexTensor(a) / b; }

// Members have the names of the functions that they call.
LazyTensor ComplexTensor::abs() const { return hypot(real_, imag_); }
ComplexTensor ComplexTensor::exp() const {
  const LazyTensor magnitude = caldera::exp(real_);
  return {magnitude * cos(imag_), magnitude * sin(imag_)};
}
ComplexTensor ComplexTensor::log() const { return {caldera::log(abs()), angle(*this)}; }
ComplexTensor ComplexTensor::matmul(const ComplexTensor& other) const {
  return {caldera::matmul(real_, other.real_) - caldera::matmul(imag_, other.imag_),
          caldera::matmul(real_, other.imag_) + caldera::matmul(imag_, other.real_)};
}

ComplexTensor ComplexTensor::sum(const Axes& axes, bool keepdims) const {
  return by_parts(*this, [&](const LazyTensor& part) { return caldera::sum(part, axes, keepdims); });
}
ComplexTensor ComplexTensor::mean(const Axes& axes, bool keepdims) const {
  return by_parts(*this, [&](const LazyTensor& part) { return caldera::mean(part, axes, keepdims); });
}
ComplexTensor ComplexTensor::astype(DType dtype) const {
  return by_parts(*this, [&](const LazyTensor& part) { return caldera::astype(part, dtype); });
}
ComplexTensor ComplexTensor::reshape(const Shape& shape) const {
  return by_parts(*this, [&](const LazyTensor& part) { return caldera::reshape(part, shape); });
}
ComplexTensor ComplexTensor::permute_dims(const std::vector<int>& axes) const {
  return by_parts(*this, [&](const LazyTensor& part) { return caldera::permute_dims(part, axes); });
}
ComplexTensor ComplexTensor::transpose() const {
  return by_parts(*this, [](const LazyTensor& part) { return caldera::transpose(part); });
}
ComplexTensor ComplexTensor::swapaxes(AxisIndex a, AxisIndex b) const {
  return by_parts(*this, [&](const LazyTensor& part) { return caldera::swapaxes(part, a, b); });
}
ComplexTensor ComplexTensor::squeeze(const Axes& axes) const {
  return by_parts(*this, [&](const LazyTensor& part) { return caldera::squeeze(part, axes); });
}
ComplexTensor ComplexTensor::expand_dims(AxisIndex axis) const {
  return by_parts(*this, [&](const LazyTensor& part) { return caldera::expand_dims(part, axis); });
}
ComplexTensor ComplexTensor::broadcast_to(const Shape& shape) const {
  return by_parts(*this, [&](const LazyTensor& part) { return caldera::broadcast_to(part, shape); });
}
ComplexTensor ComplexTensor::slice(AxisIndex axis, std::optional<std::int64_t> start,
                                   std::optional<std::int64_t> stop, std::int64_t step) const {
  return by_parts(*this,
                  [&](const LazyTensor& part) { return caldera::slice(part, axis, start, stop, step); });
}
ComplexTensor ComplexTensor::roll(const std::vector<std::int64_t>& shifts, const Axes& axes) const {
  return by_parts(*this, [&](const LazyTensor& part) { return caldera::roll(part, shifts, axes); });
}
ComplexTensor ComplexTensor::flip(const Axes& axes) const {
  return by_parts(*this, [&](const LazyTensor& part) { return caldera::flip(part, axes); });
}
ComplexTensor ComplexTensor::concatenated(const std::vector<ComplexTensor>& parts, int axis) {
  std::vector<LazyTensor> reals, imags;
  for (const ComplexTensor& part : parts) {
    reals.push_back(part.real());
    imags.push_back(part.imag());
  }
  return {concatenate(reals, axis), concatenate(imags, axis)};
}

}  // namespace caldera
