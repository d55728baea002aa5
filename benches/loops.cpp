#include "benches/loops.h"

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
#endif

}  // namespace

Loops widest_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512::kLoops;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::kLoops;
#endif
  return plain::kLoops;
}

}  // namespace caldera::bench
