#include "benches/loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace caldera::bench {
namespace {

// NOLINTBEGIN(bugprone-macro-parentheses): an attribute cannot stand in parentheses.
// One body a loop; the functions are that body with a vector width and the instructions that go with it. Ten
// chains of multiply-adds hide the latency of any core, and fit the registers of all.
#define CALDERA_BENCH_LOOPS(name, bytes, attribute)                                                     \
  namespace name {                                                                                      \
  typedef float Vector __attribute__((vector_size(bytes), may_alias));                                  \
  constexpr std::size_t kLanes = (bytes) / sizeof(float);                                               \
  attribute float read(const float* a, std::size_t n) {                                                 \
    Vector s0{}, s1{}, s2{}, s3{};                                                                      \
    for (const auto *v = reinterpret_cast<const Vector*>(a), *end = v + n / kLanes; v != end; v += 4) { \
      s0 += v[0];                                                                                       \
      s1 += v[1];                                                                                       \
      s2 += v[2];                                                                                       \
      s3 += v[3];                                                                                       \
    }                                                                                                   \
    s0 += s1 + s2 + s3;                                                                                 \
    float total = 0;                                                                                    \
    for (std::size_t lane = 0; lane < kLanes; ++lane) total += s0[lane];                                \
    return total;                                                                                       \
  }                                                                                                     \
  attribute void triad(float* a, const float* b, const float* c, std::size_t n) {                       \
    auto* const to = reinterpret_cast<Vector*>(a);                                                      \
    const auto* const x = reinterpret_cast<const Vector*>(b);                                           \
    const auto* const y = reinterpret_cast<const Vector*>(c);                                           \
    for (std::size_t i = 0; i < n / kLanes; i += 2) {                                                   \
      const Vector first = x[i] + 0.5F * y[i];                                                          \
      to[i + 1] = x[i + 1] + 0.5F * y[i + 1];                                                           \
      to[i] = first;                                                                                    \
    }                                                                                                   \
  }                                                                                                     \
  attribute float multiply_add(std::int64_t turns) {                                                    \
    const Vector k = Vector{} + 0.5F;                                                                   \
    Vector a = k, b = k * a, c = k * b, d = k * c, e = k * d;                                           \
    Vector f = k * e, g = k * f, h = k * g, i = k * h, j = k * i;                                       \
    for (std::int64_t turn = 0; turn < turns; ++turn) {                                                 \
      a = a * k + k, b = b * k + k, c = c * k + k, d = d * k + k, e = e * k + k;                        \
      f = f * k + k, g = g * k + k, h = h * k + k, i = i * k + k, j = j * k + k;                        \
    }                                                                                                   \
    a += b + c + d + e + f + g + h + i + j;                                                             \
    return a[0];                                                                                        \
  }                                                                                                     \
  constexpr Loops kLoops{read, triad, multiply_add, std::int64_t{10} * 2 * std::int64_t{kLanes}};       \
  }

// NOLINTEND(bugprone-macro-parentheses)

CALDERA_BENCH_LOOPS(plain, 16, __attribute__((noinline)))
#if defined(__x86_64__)
CALDERA_BENCH_LOOPS(avx2, 32, __attribute__((target("avx2,fma"), noinline)))
CALDERA_BENCH_LOOPS(avx512, 64, __attribute__((target("avx512f,fma"), noinline)))

// Ten chains, as above: each in a variable of its own, so that it is in a register, and with values of its
// own, so that none is computed for another.
constexpr std::int64_t kChains = 10;

__attribute__((target("avx512f,avx512vnni"), noinline)) std::int32_t integers_avx512(std::int64_t turns) {
  const __m512i k = _mm512_set1_epi8(1);
  __m512i a = k, b = a + k, c = b + k, d = c + k, e = d + k;
  __m512i f = e + k, g = f + k, h = g + k, i = h + k, j = i + k;
  const auto step = [k](__m512i & chain) __attribute__((target("avx512f,avx512vnni"), always_inline)) {
    chain = _mm512_dpbusd_epi32(chain, k, k);
  };
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    step(a), step(b), step(c), step(d), step(e), step(f), step(g), step(h), step(i), step(j);
  }
  a += b + c + d + e + f + g + h + i + j;
  return static_cast<std::int32_t>(a[0]);
}

__attribute__((target("avx2"), noinline)) std::int32_t integers_avx2(std::int64_t turns) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i k = _mm256_set1_epi8(1);
  __m256i a = k, b = a + k, c = b + k, d = c + k, e = d + k;
  __m256i f = e + k, g = f + k, h = g + k, i = h + k, j = i + k;
  const auto step = [&](__m256i & chain) __attribute__((target("avx2"), always_inline)) {
    chain = _mm256_add_epi32(chain, _mm256_madd_epi16(_mm256_maddubs_epi16(k, k), ones));
    asm volatile("" : "+x"(k));  // else the product is formed once, and not at all in the loop
  };
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    step(a), step(b), step(c), step(d), step(e), step(f), step(g), step(h), step(i), step(j);
  }
  a += b + c + d + e + f + g + h + i + j;
  return static_cast<std::int32_t>(a[0]);
}
#endif

}  // namespace

Loops widest_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512::kLoops;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::kLoops;
#endif
  return plain::kLoops;
}

IntegerLoop widest_integer_loop() {
#if defined(__x86_64__)
  constexpr std::int64_t kPerByte = 2;  // a product and a sum
  if (__builtin_cpu_supports("avx512vnni")) return {integers_avx512, kChains * 64 * kPerByte};
  if (__builtin_cpu_supports("avx2")) return {integers_avx2, kChains * 32 * kPerByte};
#endif
  return {};
}

}  // namespace caldera::bench
