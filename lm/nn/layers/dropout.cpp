#include "lm/nn/layers/dropout.h"

#include <fmt/format.h>

#include "ops/nn/dropout.h"

namespace caldera {

Dropout::Dropout(double p, std::uint64_t stream) : p_(p), stream_(stream), seed_(mix_seed(0, stream)) {
  if (!(p >= 0 && p < 1)) throw ValueError(fmt::format("Dropout: probability {} is not in [0, 1)", p));
}

LazyTensor Dropout::forward(const LazyTensor& x) {
  if (!is_training() || p_ == 0) return x;
  return dropout(x, p_, mix_seed(seed_, calls_++));
}

void Dropout::visit(const std::string&, ParameterVisitor&) {}

void Dropout::reseed(std::uint64_t seed) {
  seed_ = mix_seed(seed, stream_);
  calls_ = 0;
}

}  // namespace caldera
