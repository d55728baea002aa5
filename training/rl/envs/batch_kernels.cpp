// No product and sum may become one instruction here, so that every instruction set gives the same numbers.
#include "training/rl/envs/batch_kernels.h"

#include <cstdint>
#include <numbers>
#include <span>
#include <string>

#include "engine/base/error.h"
#include "training/rl/envs/dynamics.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "training/rl/envs/batch_kernels.cpp"
// Vectors whose length the compiler does not know cannot be members.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::rl::detail {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::ScalableTag<double>;

/// As many numbers as a register holds.
struct Lanes {
  hn::Vec<Doubles> v;
  Lanes() : v(hn::Zero(Doubles())) {}
  Lanes(hn::Vec<Doubles> value) : v(value) {}
  Lanes(double value) : v(hn::Set(Doubles(), value)) {}
};
struct Flags {
  hn::Mask<Doubles> m;
};

inline Lanes operator+(const Lanes& a, const Lanes& b) { return hn::Add(a.v, b.v); }
inline Lanes operator-(const Lanes& a, const Lanes& b) { return hn::Sub(a.v, b.v); }
inline Lanes operator*(const Lanes& a, const Lanes& b) { return hn::Mul(a.v, b.v); }
inline Lanes operator/(const Lanes& a, const Lanes& b) { return hn::Div(a.v, b.v); }
inline Lanes operator-(const Lanes& a) { return hn::Neg(a.v); }
inline Flags operator<(const Lanes& a, const Lanes& b) { return {hn::Lt(a.v, b.v)}; }
inline Flags operator>(const Lanes& a, const Lanes& b) { return {hn::Gt(a.v, b.v)}; }
inline Flags operator<=(const Lanes& a, const Lanes& b) { return {hn::Le(a.v, b.v)}; }
inline Flags operator>=(const Lanes& a, const Lanes& b) { return {hn::Ge(a.v, b.v)}; }
inline Flags operator!=(const Lanes& a, const Lanes& b) { return {hn::Ne(a.v, b.v)}; }
inline Lanes sine(const Lanes& x) { return hn::Sin(Doubles(), x.v); }
inline Lanes cosine(const Lanes& x) { return hn::Cos(Doubles(), x.v); }
inline Lanes choose(const Flags& c, const Lanes& a, const Lanes& b) { return hn::IfThenElse(c.m, a.v, b.v); }
inline Lanes at_least(const Lanes& x, double low) { return hn::Max(x.v, hn::Set(Doubles(), low)); }
inline Lanes at_most(const Lanes& x, double high) { return hn::Min(x.v, hn::Set(Doubles(), high)); }
inline Flags either(const Flags& a, const Flags& b) { return {hn::Or(a.m, b.m)}; }
inline Flags both(const Flags& a, const Flags& b) { return {hn::And(a.m, b.m)}; }
inline Lanes modulo(const Lanes& x, double divisor) {
  return x - Lanes(hn::Floor((x / divisor).v)) * Lanes(divisor);
}

#include "training/rl/envs/dynamics-inl.h"

template <class Dynamics>
void begin(const double* draws, double* states, std::size_t stride, std::size_t i) {
  std::array<double, Dynamics::kDraws> numbers{};
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = draws[k];
  const auto state = Dynamics::template begin<double>(numbers);
  for (std::size_t k = 0; k < state.size(); ++k) states[k * stride + i] = state[k];
}

template <class Dynamics>
void step(double* states, const double* actions, double* rewards, double* ended, std::size_t stride) {
  const Doubles d;
  for (std::size_t i = 0; i < stride; i += hn::Lanes(d)) {
    std::array<Lanes, Dynamics::kState> state;
    for (std::size_t k = 0; k < state.size(); ++k) state[k] = hn::LoadU(d, states + k * stride + i);
    const auto outcome = Dynamics::template advance<Lanes>(state, Lanes(hn::LoadU(d, actions + i)));
    for (std::size_t k = 0; k < state.size(); ++k) hn::StoreU(state[k].v, d, states + k * stride + i);
    hn::StoreU(outcome.reward.v, d, rewards + i);
    hn::StoreU(choose(outcome.ended, Lanes(1.0), Lanes(0.0)).v, d, ended + i);
  }
}

template <class Dynamics>
void observe(const double* states, double* seen, double* rows, std::size_t stride, std::size_t count) {
  constexpr std::size_t kWidth = Dynamics::kObservation;
  const Doubles d;
  for (std::size_t i = 0; i < stride; i += hn::Lanes(d)) {
    std::array<Lanes, Dynamics::kState> state;
    for (std::size_t k = 0; k < state.size(); ++k) state[k] = hn::LoadU(d, states + k * stride + i);
    const auto numbers = Dynamics::template observe<Lanes>(state);
    for (std::size_t k = 0; k < kWidth; ++k) hn::StoreU(numbers[k].v, d, seen + k * stride + i);
  }
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < kWidth; ++k) rows[i * kWidth + k] = seen[k * stride + i];
}

/// With sine and cosine of vectors, as the others.
template <class Dynamics>
void observe_one(const double* states, double* row, std::size_t stride, std::size_t i) {
  std::array<Lanes, Dynamics::kState> state;
  for (std::size_t k = 0; k < state.size(); ++k) state[k] = Lanes(states[k * stride + i]);
  const auto numbers = Dynamics::template observe<Lanes>(state);
  for (std::size_t k = 0; k < numbers.size(); ++k) row[k] = hn::GetLane(numbers[k].v);
}

template <class Dynamics>
BatchKernel kernel_of() {
  return {Dynamics::kName, Dynamics::kDraws,  begin<Dynamics>,
          step<Dynamics>,  observe<Dynamics>, observe_one<Dynamics>};
}

const std::array<BatchKernel, 5>& batch_kernels() {
  static const std::array<BatchKernel, 5> kAll{kernel_of<CartPole>(), kernel_of<Pendulum>(),
                                               kernel_of<MountainCar>(), kernel_of<MountainCarContinuous>(),
                                               kernel_of<Acrobot>()};
  return kAll;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::rl::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::rl::detail {

HWY_EXPORT(batch_kernels);

const BatchKernel& find_batch_kernel(std::string_view name) {
  for (const BatchKernel& kernel : HWY_DYNAMIC_DISPATCH(batch_kernels)())
    if (kernel.name == name) return kernel;
  throw ValueError("there is no batched environment '" + std::string(name) + "'");
}

}  // namespace caldera::rl::detail
#endif
