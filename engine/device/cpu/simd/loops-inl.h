// Plain loops that the compiler vectorises. Included once for every instruction set, between
// HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE.
#if defined(CALDERA_LOOPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_LOOPS_INL
#undef CALDERA_LOOPS_INL
#else
#define CALDERA_LOOPS_INL
#endif

#include <cstdint>

// No iteration reads what another writes: an output may be the operand itself, element by element.
#undef CALDERA_INDEPENDENT
#ifdef __clang__
#define CALDERA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define CALDERA_INDEPENDENT _Pragma("GCC ivdep")
#endif

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

/// body(i) for i in [0, n), in any order. At -O2 GCC vectorises only loops whose count it knows to be whole
/// vectors: hence the blocks.
template <class Body>
HWY_INLINE void each(std::int64_t n, const Body& body) {
  constexpr std::int64_t kBlock = 64;
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    CALDERA_INDEPENDENT
    for (std::int64_t j = 0; j < kBlock; ++j) body(i + j);
  }
  for (; i < n; ++i) body(i);
}

/// R out = F::of(A), element by element.
template <class F, class A, class R>
void unary_loop(void* out, const void* a, const void*, const void*, std::int64_t n) {
  auto* o = static_cast<R*>(out);
  const auto* x = static_cast<const A*>(a);
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): int8 is a number here, not a character
  each(n, [=](std::int64_t i) HWY_ATTR { o[i] = static_cast<R>(F::of(x[i])); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#endif
