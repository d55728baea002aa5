#include "engine/control/scan.h"

#include <fmt/core.h>

#include "engine/autodiff/argument_checks.h"
#include "engine/base/error.h"
#include "engine/control/carry.h"
#include "engine/control/scan_loop.h"
#include "ops/core/creation.h"

namespace caldera {

ScanTurn scan(const ScanBody& body, std::span<const LazyTensor> init, std::span<const LazyTensor> over,
              const ScanOptions& options) {
  return all_of_scan("scan", body, init, over, options).turn;
}

std::vector<LazyTensor> for_loop(
    std::int64_t turns,
    const std::function<std::vector<LazyTensor>(const LazyTensor& i, std::span<const LazyTensor> x)>& body,
    std::span<const LazyTensor> init, ForLoopOptions options) {
  check_callable(body, "for_loop");
  if (turns < 0) throw ValueError(fmt::format("for_loop: {} turns; give 0 or more", turns));
  check_defined(init, "for_loop", "carry");
  // The numbers are gone through, not counted up: gradients need no turn before to know them.
  const LazyTensor numbers = iota(Shape{turns}, 0, DType::i64, device_among(init));
  const auto turn = [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> slices) {
    return ScanTurn{body(slices[0], carry)};
  };
  return all_of_scan("for_loop", turn, init, std::span(&numbers, 1), {.snapshots = options.snapshots})
      .turn.carry;
}

LazyTensor for_loop(std::int64_t turns,
                    const std::function<LazyTensor(const LazyTensor& i, const LazyTensor& x)>& body,
                    const LazyTensor& init, ForLoopOptions options) {
  check_callable(body, "for_loop");
  const std::function<std::vector<LazyTensor>(const LazyTensor&, std::span<const LazyTensor>)> all =
      [&](const LazyTensor& i, std::span<const LazyTensor> x) { return std::vector{body(i, x[0])}; };
  return for_loop(turns, all, std::span(&init, 1), options)[0];
}

}  // namespace caldera
