// BatchEnvironment: many classic environments, stepped by the vector units of a processor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/rl/envs/vector_environment.h"

namespace caldera::rl {

namespace detail {
struct BatchKernel;
struct ClassicFacts;
}  // namespace detail

/// A classic environment by name, `count` times, in f64. States are a stored array a number, and a step goes
/// over them with the instruction set of the processor: it differs from Environment::step by the roundings of
/// sine and cosine alone. Throws ValueError for a name that is no classic environment.
class BatchEnvironment final : public VectorEnvironment {
 public:
  BatchEnvironment(std::string_view name, std::int64_t count, std::uint64_t seed);

  void reset() override;
  void step(std::span<const double> actions) override;
  VectorState state() const override;
  void set_state(const VectorState& state) override;

 private:
  void begin(std::size_t i);
  void observe();

  const detail::ClassicFacts& facts_;
  const detail::BatchKernel& kernel_;
  std::size_t stride_;           // environments that there is room for, a multiple of any vector's length
  std::vector<double> states_;   // (state, stride)
  std::vector<double> actions_;  // (stride)
  std::vector<double> seen_;     // (observation, stride)
  std::vector<double> rewards_, ended_;
  std::vector<std::int32_t> taken_;
  std::vector<Random> randoms_;
};

}  // namespace caldera::rl
