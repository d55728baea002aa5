#include "engine/device/cpu/quantized/integer_ops.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/quantized/integer_ops.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/quantized/byte_codes-inl.h"
#include "engine/device/cpu/quantized/decode_blocks-inl.h"
#include "engine/device/cpu/quantized/integer_codes-inl.h"
#include "engine/device/cpu/quantized/integer_dots-inl.h"
#include "engine/device/cpu/quantized/integer_panels-inl.h"
#include "engine/device/cpu/quantized/integer_rounding-inl.h"
#include "engine/device/cpu/quantized/interleaved_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

const IntegerOps* integer_ops_of_target(bool byte_dots) {
  static constexpr IntegerOps plain{round_rows, dot<false>, nullptr, nullptr, nullptr, nullptr, nullptr};
#if CALDERA_HAS_BYTE_DOTS
  static constexpr IntegerOps with_byte_dots{round_rows, dot<true>,       round_tile,      pack,
                                             multiply,   dot_interleaved, pack_interleaved};
  if (byte_dots && __builtin_cpu_supports("avx512vnni")) return &with_byte_dots;
#endif
  (void)byte_dots;
  return &plain;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(integer_ops_of_target);

const IntegerOps& choose_integer_ops(bool byte_dots) {
  return *HWY_DYNAMIC_DISPATCH(integer_ops_of_target)(byte_dots);
}

const IntegerOps& integer_ops() {
  static const IntegerOps& ops = choose_integer_ops(true);
  return ops;
}

}  // namespace caldera::cpu
#endif
