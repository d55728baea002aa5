// Vectors of f32 from numbers of 16 bits in memory. Included once for every instruction set.
#if defined(CALDERA_WIDENING_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_WIDENING_INL
#undef CALDERA_WIDENING_INL
#else
#define CALDERA_WIDENING_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> widened_bf16(D d, const std::uint16_t* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto bits = hn::LoadU(hn::Rebind<std::uint16_t, D>(), p);
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), bits)));
}

template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> widened_f16(D d, const std::uint16_t* p) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto bits = hn::LoadU(hn::Rebind<std::uint16_t, D>(), p);
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
  const hn::RebindToUnsigned<D> words;
  const auto h = hn::PromoteTo(words, bits);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(h, hn::Set(words, 0x7fffU)));
  const auto sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(words, 0x8000U)));
  // Reads the exponents as if they had one bias: a power of two then corrects it.
  const auto number = hn::BitCast(words, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112F)));
  const auto special = hn::Or(magnitude, hn::Set(words, 0x7f800000U));
  const auto is_special = hn::Eq(hn::And(h, hn::Set(words, 0x7c00U)), hn::Set(words, 0x7c00U));
  return hn::BitCast(d, hn::Or(hn::IfThenElse(is_special, special, number), sign));
#else
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();
#endif  // CALDERA_WIDENING_INL
