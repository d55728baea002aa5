#include "engine/tensor/dtype.h"

namespace caldera {
namespace {

// Array API type promotion. Rows and columns in the order of DType. Unsigned with signed gives the signed
// type that holds both. Integer or boolean with floating is left open by the standard: as in PyTorch, the
// floating type wins. f16 with bf16 meets in f32.
constexpr DType B = DType::boolean, U8 = DType::u8, U32 = DType::u32, I8 = DType::i8, I16 = DType::i16,
                I32 = DType::i32, I64 = DType::i64, F16 = DType::f16, BF = DType::bf16, F32 = DType::f32,
                F64 = DType::f64;
// clang-format off
constexpr DType kPromotion[kDTypeCount][kDTypeCount] = {
    /*          bool u8  u32  i8  i16  i32  i64  f16 bf16 f32  f64 */
    /* bool */ {B, U8, U32, I8, I16, I32, I64, F16, BF, F32, F64},
    /* u8   */ {U8, U8, U32, I16, I16, I32, I64, F16, BF, F32, F64},
    /* u32  */ {U32, U32, U32, I64, I64, I64, I64, F16, BF, F32, F64},
    /* i8   */ {I8, I16, I64, I8, I16, I32, I64, F16, BF, F32, F64},
    /* i16  */ {I16, I16, I64, I16, I16, I32, I64, F16, BF, F32, F64},
    /* i32  */ {I32, I32, I64, I32, I32, I32, I64, F16, BF, F32, F64},
    /* i64  */ {I64, I64, I64, I64, I64, I64, I64, F16, BF, F32, F64},
    /* f16  */ {F16, F16, F16, F16, F16, F16, F16, F16, F32, F32, F64},
    /* bf16 */ {BF, BF, BF, BF, BF, BF, BF, F32, BF, F32, F64},
    /* f32  */ {F32, F32, F32, F32, F32, F32, F32, F32, F32, F32, F64},
    /* f64  */ {F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, F64},
};
// clang-format on

}  // namespace

DType promote(DType a, DType b) { return kPromotion[static_cast<int>(a)][static_cast<int>(b)]; }

float to_float(Half h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (h.bits >> 10) & 0x1fU;
  const std::uint32_t fraction = h.bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

Half to_half(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return {static_cast<std::uint16_t>(sign | 0x7e00U)};
  if (magnitude >= 0x477ff000U) return {static_cast<std::uint16_t>(sign | 0x7c00U)};  // rounds past 65504
  if (magnitude < 0x38800000U) {  // below 2^-14: adding 0.5 aligns the fraction so that the FPU rounds it
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U))};
  }
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13))};
}

BFloat16 to_bfloat16(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

}  // namespace caldera
