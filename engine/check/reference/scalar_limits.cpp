#include "engine/check/reference/scalar_limits.h"

namespace caldera::reference {
namespace {

constexpr const char* kExact = "the reference rounded once: one correctly rounded operation";
constexpr const char* kCpuFunction = "2 ulp: the polynomials of the CPU device";
constexpr const char* kGpuExp = "Vulkan, precision of exp (3 + 2 |x| ulp) and log (3 ulp, 2^-21 near 1)";
constexpr const char* kGpuSin = "sin, cos and pow in software, from Vulkan's mul, div, exp and log";
constexpr const char* kGpuDivision = "Vulkan, precision of division (2.5 ulp), sqrt and rsqrt (2 ulp)";
constexpr const char* kGammaTerms = "sums of tens of terms, and an exponential of up to 600";
constexpr const char* kStored = "as computed in f32, and one unit of the 16-bit type";
constexpr const char* kWide = "software functions of f64 on GPUs";

}  // namespace

Allowed scalar_allowed(ScalarOp op, DType type, Device device) {
  const bool gpu = device.kind == DeviceKind::vulkan;
  if (!is_floating(type)) return {{}, kExact};
  const double ulp = type == DType::f64 ? 2.3e-16 : 1.2e-7;
  const Allowed wide{{1e-12, 1e-13}, kWide};
  switch (op) {
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::tan:
    case ScalarOp::atan2:
    case ScalarOp::pow:
      if (!gpu) return {{2.2 * ulp, 0}, kCpuFunction};
      return type == DType::f64 ? wide : Allowed{{1e-4, 1e-4}, kGpuSin};
    case ScalarOp::gamma_weight:
    case ScalarOp::gamma_series:
    case ScalarOp::gamma_fraction:
      if (!gpu) return {{type == DType::f64 ? 2e-14 : 2.2 * ulp, 0}, kGammaTerms};
      return type == DType::f64 ? wide : Allowed{{1e-5, 1e-30}, kGammaTerms};
    case ScalarOp::rsqrt:
      if (!gpu) return {{2 * ulp, 0}, kCpuFunction};
      return type == DType::f64 ? wide : Allowed{{1e-6, 0}, kGpuDivision};
    case ScalarOp::div:
    case ScalarOp::sqrt:
    case ScalarOp::reciprocal:
    case ScalarOp::remainder:
    case ScalarOp::floor_div:
      if (!gpu) return {{type == DType::f64 ? ulp : 0, 0}, kExact};
      return type == DType::f64 ? wide : Allowed{{1e-6, 1e-6}, kGpuDivision};
    default:
      if (!is_elementary(op)) return {{}, kExact};
      if (!gpu) return {{2.2 * ulp, 0}, kCpuFunction};
      return type == DType::f64 ? wide : Allowed{{1e-5, 1e-6}, kGpuExp};
  }
}

Allowed stored_as(DType memory, const Allowed& computed) {
  const Tolerance& t = computed.tolerance;
  if (!is_half(memory) || (t.relative == 0 && t.absolute == 0)) return computed;
  const bool f16 = memory == DType::f16;
  return {{t.relative + (f16 ? 0x1p-10 : 0x1p-7), t.absolute + (f16 ? 0x1p-24 : 0x1p-133)}, kStored};
}

Range checked_range(ScalarOp op) {
  switch (op) {
    case ScalarOp::gamma_weight:
    case ScalarOp::gamma_series:
    case ScalarOp::gamma_fraction:
    case ScalarOp::log:
    case ScalarOp::log2:
    case ScalarOp::log10:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt:
      return {1e-3, 50};
    case ScalarOp::log1p:
      return {-0.99, 20};
    case ScalarOp::asin:
    case ScalarOp::acos:
      return {-1, 1};
    case ScalarOp::pow:
      return {0.1, 4};
    case ScalarOp::exp:
    case ScalarOp::exp2:
    case ScalarOp::expm1:
      return {-20, 20};
    case ScalarOp::sin:
    case ScalarOp::cos:
      return {-600, 600};
    default:
      return {-4, 4};
  }
}

}  // namespace caldera::reference
