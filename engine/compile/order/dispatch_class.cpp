#include "engine/compile/order/dispatch_class.h"

#include <cstdint>

namespace caldera {
namespace {

/// Kernels for few rows are others than those for many.
std::uint64_t size_class(std::int64_t extent) {
  constexpr std::int64_t kFew = 8, kNarrow = 64;
  if (extent <= 1) return 0;
  if (extent <= kFew) return 1;
  return extent <= kNarrow ? 2 : 3;
}

enum class Lies : std::uint8_t { along_k, across_k, otherwise };

Lies layout_of(const Operand& factor, int across) {
  if (factor.strides.back() == 1) return Lies::along_k;
  return factor.strides[across] == 1 ? Lies::across_k : Lies::otherwise;
}

Hash128 class_of(const Plan& plan, const Step& step, const ContractStep& contract) {
  const int rank = step.dims.rank();
  Hash128 hash;
  hash.mix(static_cast<std::uint64_t>(step.dtype));
  const std::int64_t rows = step.dims[rank - 3];
  // Single rows side by side are like one long row.
  const int first = rows == 1 ? 0 : rank - 2;
  std::int64_t columns = 1;
  for (int d = first; d < rank - 1; ++d) columns *= step.dims[d];
  hash.mix(size_class(rows));
  hash.mix(size_class(columns));
  for (std::size_t s = 0; s < contract.segments.size(); ++s) {
    const std::int32_t scale = contract.segments[s].scale;
    hash.mix(scale < 0 ? ~std::uint64_t{0}
                       : static_cast<std::uint64_t>(plan.scalars[static_cast<std::size_t>(scale)]));
    for (const std::size_t side : {0U, 1U}) {
      const Operand& factor = step.operands[2 * s + side];
      hash.mix(static_cast<std::uint64_t>(plan.buffers[static_cast<std::size_t>(factor.buffer)].dtype));
      hash.mix(static_cast<std::uint64_t>(layout_of(factor, side == 0 ? rank - 3 : rank - 2)));
    }
  }
  return hash;
}

}  // namespace

Hash128 product_class(const Plan& plan, const Step& step) {
  return class_of(plan, step, step.as<ContractStep>());
}

std::optional<Hash128> dispatch_class(const Plan& plan, const Step& step) {
  if (const auto* region = step.if_a<RegionStep>()) return region->kernel->hash;
  const auto* contract = step.if_a<ContractStep>();
  if (contract == nullptr) return {};
  Hash128 hash = product_class(plan, step);
  if (contract->epilogue) {
    hash.mix(contract->epilogue->hash.lo);
    hash.mix(contract->epilogue->hash.hi);
  }
  return hash;
}

}  // namespace caldera
