#include "engine/check/reference/row_kernels.h"

namespace caldera::reference {

std::shared_ptr<const Kernel> softmax_kernel(DType type) {
  KernelBuilder b("softmax");
  const auto x = b.load(type);
  const auto e = b.op(ScalarOp::exp, b.op(ScalarOp::sub, x, b.op(ScalarOp::row_maximum, x)));
  return b.store(b.op(ScalarOp::div, e, b.op(ScalarOp::row_sum, e)), type).finish();
}

std::shared_ptr<const Kernel> log_softmax_kernel() {
  KernelBuilder b("log_softmax");
  const auto x = b.load(DType::f32);
  const auto d = b.op(ScalarOp::sub, x, b.op(ScalarOp::row_maximum, x));
  const auto sum = b.op(ScalarOp::row_sum, b.op(ScalarOp::exp, d));
  return b.store(b.op(ScalarOp::sub, d, b.op(ScalarOp::log, sum))).finish();
}

std::shared_ptr<const Kernel> layer_norm_kernel() {
  KernelBuilder b("layer_norm");
  const auto x = b.load(DType::f32);
  const auto weight = b.load(DType::f32);
  const auto bias = b.load(DType::f32);
  const auto share = b.scalar(DType::f32);
  const auto epsilon = b.scalar(DType::f32);
  const auto mean = b.op(ScalarOp::mul, b.op(ScalarOp::row_sum, x), share);
  const auto d = b.op(ScalarOp::sub, x, mean);
  const auto variance = b.op(ScalarOp::mul, b.op(ScalarOp::row_sum, b.op(ScalarOp::mul, d, d)), share);
  const auto scale = b.op(ScalarOp::rsqrt, b.op(ScalarOp::add, variance, epsilon));
  const auto normal = b.op(ScalarOp::mul, d, scale);
  return b.store(b.op(ScalarOp::add, b.op(ScalarOp::mul, normal, weight), bias)).finish();
}

std::shared_ptr<const Kernel> rms_norm_kernel(DType type) {
  KernelBuilder b("rms_norm");
  const auto x = b.load(type);
  const auto weight = b.load(type);
  const auto share = b.scalar(compute_type(type));
  const auto epsilon = b.scalar(compute_type(type));
  const auto square = b.op(ScalarOp::mul, b.op(ScalarOp::row_sum, b.op(ScalarOp::mul, x, x)), share);
  const auto root = b.op(ScalarOp::sqrt, b.op(ScalarOp::add, square, epsilon));
  const auto scale = b.op(ScalarOp::reciprocal, root);
  const auto result = b.op(ScalarOp::mul, b.op(ScalarOp::mul, x, scale), weight);
  return b.store(result, type).store(scale, type).finish();
}

Tolerance row_tolerance(Device device, std::int64_t length) {
  const double ulp = 1.2e-7;
  const double sum = ulp * (8 + static_cast<double>(length) / 512);
  return {sum + (device.kind == DeviceKind::vulkan ? 2e-5 : 8 * ulp), 0};
}

}  // namespace caldera::reference
