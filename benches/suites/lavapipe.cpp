// The suite "lavapipe": what ggml's Vulkan backend was measured on, on the same software device. A case's
// bound is the share of ggml's time that the project aims at, so one run shows what is met.
#include <algorithm>
#include <string_view>
#include <utility>

#include "benches/case.h"
#include "benches/suites/suites.h"

namespace caldera::bench {
namespace {

struct Rival {
  const char* name;  // of a case of another suite
  double ggml_us;    // the lower end of what it took: Mesa 22.3.6, two cores of a Zen 5, quiet
  double share;
};

constexpr double kMatmulFlops = 2.0 * 1024 * 1024 * 1024;

constexpr Rival kRivals[] = {
    {"ops/softmax/named", 13.5e3, 0.5},
    {"ops/rms_norm/named", 506e3, 0.05},  // with weight
    {"seeds/lora/lazy/32x1024/r16", 24e3, 0.8},
    {"ops/matmul/1024", kMatmulFlops / 8.9e3, 0.9},  // 8.9 GFLOP/s
    {"ops/elementwise/chain8", 400e3, 0.05},
    {"seeds/lora/lazy+grad/1x1x512/r8", 4.2e3, 0.5},
};

}  // namespace

std::vector<Case> lavapipe_suite() {
  std::vector<Case> all = seeds_suite();
  for (Case& c : ops_suite()) all.push_back(std::move(c));
  std::vector<Case> cases;
  cases.reserve(std::size(kRivals));
  for (const Rival& rival : kRivals) {
    const auto found = std::ranges::find(all, std::string_view(rival.name), &Case::name);
    if (found == all.end()) throw Error(std::string("no case is named ") + rival.name);
    Case c = std::move(*found);
    c.name = "lavapipe/" + c.name;
    c.bound_us = rival.ggml_us * rival.share;
    c.aim_ratio = 0;
    c.peer = nullptr;
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace caldera::bench
