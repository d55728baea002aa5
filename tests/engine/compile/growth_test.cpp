// How plans grow with their programs: counted in what steps compute and in nodes that passes make, which do
// not depend on the machine; time only with a margin of an order.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>

#include "engine/caldera.h"
#include "engine/compile/compile.h"
#include "engine/compile/emit/layouts.h"
#include "engine/compile/order/waiting_bytes.h"
#include "engine/compile/rewrite/simplify.h"
#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/evaluate.h"
#include "tests/engine/compile/unit_plans.h"
#include "tests/support/engine_setup.h"
#include "tests/support/plans/named_programs.h"

namespace caldera::testing {
namespace {

using Outputs = std::vector<LazyTensor>;

LazyTensor grown_input(const Shape& shape) { return program_input(shape, Device::null()); }

/// Instructions of all kernels, once for each element that they are run for.
std::int64_t instructions(const Outputs& outputs) {
  const ScopedSettings scope;
  std::int64_t total = 0;
  const auto plan = plan_for(outputs);
  for (const Step& step : plan->steps) {
    if (const auto* region = step.if_a<RegionStep>())
      total += step.dims.numel() * static_cast<std::int64_t>(region->kernel->code.size());
  }
  return total;
}

/// What `visit` makes of the program of `outputs`.
template <class Visit>
auto of_program(const Outputs& outputs, Visit visit) {
  const std::scoped_lock lock(graph_mutex());
  GraphKey key;
  key.reset(Device::null());
  for (const LazyTensor& output : outputs) key.outputs.push_back(&output.node());
  key.fill();
  return visit(key.program());
}
std::size_t simplified_nodes(const Outputs& outputs) {
  return of_program(outputs, [](const Program& program) { return simplify(program, true).nodes.size(); });
}
/// Seconds of the processor for `work` on what `make` makes, the best of three runs: on a busy machine, too.
template <class Make, class Work>
double best_seconds(Make make, Work work) {
  double best = 1e9;
  for (int run = 0; run < 3; ++run) {
    auto&& made = make();
    const std::clock_t begin = std::clock();
    work(made);
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return best;
}
double planning_seconds(const Outputs& outputs) {
  return of_program(outputs, [](const Program& program) {
    return best_seconds([&]() -> const Program& { return program; },
                        [](const Program& it) { compile(it, {}); });
  });
}

Outputs differences(int order) { return {diff(grown_input({500}), order)}; }
Outputs windows(int count) {
  const LazyTensor f = tanh(exp(sin(grown_input({500}))));
  LazyTensor total;
  for (int k = 0; k < count; ++k) {
    const LazyTensor one = slice(f, 0, k, 400 + k);
    total = k == 0 ? one : total + one;
  }
  return {total};
}
Outputs stencil(int times) {
  LazyTensor u = grown_input({500});
  for (int t = 0; t < times; ++t) u = slice(u, 0, 0, -2) + 2.0 * slice(u, 0, 1, -1) + slice(u, 0, 2, {});
  return {u};
}
Outputs rows(int count, bool shuffled) {
  const LazyTensor x = grown_input({count, 8});
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  if (shuffled) std::shuffle(order.begin(), order.end(), std::mt19937(3));
  LazyTensor total;
  for (const int i : order) {
    const LazyTensor row = tanh(slice(x, 0, i, i + 1));
    total = total.defined() ? total + row : row;
  }
  return {grad(sum(total), x)};
}
/// Halves of halves: every level cuts what the level before it has computed.
Outputs halves(int levels) {
  Outputs parts{grown_input({1024})};
  for (int level = 0; level < levels; ++level) {
    Outputs next;
    for (const LazyTensor& part : parts) {
      const LazyTensor y = tanh(part) * 0.5;
      const std::int64_t half = y.shape(0) / 2;
      next.push_back(slice(y, 0, 0, half));
      next.push_back(slice(y, 0, half, {}));
    }
    parts = std::move(next);
  }
  return {concatenate(parts, 0)};
}

TEST(Growth, WhatIsReadInOverlappingSlicesIsComputedOnce) {
  EXPECT_LE(plan_for(differences(13))->steps.size(), 13U);
  EXPECT_LE(plan_for(stencil(10))->steps.size(), 10U);
  EXPECT_LE(instructions(stencil(10)), 10 * 500 * 12);
  EXPECT_LE(instructions(windows(48)), 500 * 4 + 2 * 48 * 400 + 48 * 400);
  // A pooling window of 24 over a function.
  const LazyTensor x = grown_input({1, 1, 1, 300});
  EXPECT_LE(instructions({avg_pool(gelu(x), {1, 24}, {.stride = {1, 1}})}), 300 * 30 + 300 * 24 * 6);
}

TEST(Growth, SlicesThatShareNothingAreComputedApart) {
  const LazyTensor x = grown_input({8, 64}), y = tanh(exp(x));
  const ScopedSettings scope;
  EXPECT_EQ(plan_for({slice(y, 1, 0, 8) * 2.0})->steps.size(), 1U) << "one eighth is needed";
  EXPECT_EQ(instructions({slice(y, 1, 0, 8) * 2.0}) % (8 * 8), 0);
  EXPECT_LT(instructions(halves(6)), 6 * 1024 * 8);
}

TEST(Growth, NodesAreLinearInNodes) {
  const auto doubled = [](const std::function<Outputs(int)>& make, int n) {
    return static_cast<double>(simplified_nodes(make(2 * n))) /
           static_cast<double>(simplified_nodes(make(n)));
  };
  EXPECT_LT(doubled(differences, 12), 2.2);
  EXPECT_LT(doubled(stencil, 12), 2.2);
  EXPECT_LT(doubled(windows, 24), 2.2);
  EXPECT_LT(doubled([](int n) { return rows(n, false); }, 200), 2.2);
  EXPECT_LT(doubled([](int n) { return rows(n, true); }, 200), 2.2);
  EXPECT_LT(static_cast<double>(simplified_nodes(halves(7))),
            3.0 * static_cast<double>(simplified_nodes(halves(6))));
}

TEST(Growth, GradientsOfRowsInAnyOrderAreOneConcatenation) {
  EXPECT_EQ(instructions(rows(64, true)), instructions(rows(64, false)));
  EXPECT_EQ(plan_for(rows(64, true))->steps.size(), plan_for(rows(64, false))->steps.size());
  EXPECT_LE(instructions(rows(256, true)), 5 * instructions(rows(64, true)));
}

TEST(Growth, SumsOfPaddingsKeepTheOrderOfWhatMeets) {
  // Windows of 8 that begin at every multiple of 4: two layers, however many there are.
  const LazyTensor x = grown_input({400});
  LazyTensor loss;
  for (int i = 0; i + 8 <= 400; i += 4) {
    const LazyTensor part = sum(slice(x, 0, i, i + 8) * static_cast<double>(i));
    loss = loss.defined() ? loss + part : part;
  }
  EXPECT_LE(instructions({grad(loss, x)}), 400 * 40);
}

TEST(Growth, TimeIsNearLinear) {
  const auto ratio = [](const std::function<Outputs(int)>& make, int n) {
    return planning_seconds(make(8 * n)) / planning_seconds(make(n));
  };
  const auto branching = [](int n) {
    Outputs seen{grown_input({8, 8}), grown_input({8, 8})};
    for (int i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      seen.push_back(i % 3 == 0 ? tanh(seen[k] * seen[k + 1]) : seen[k] + seen[k + 1]);
    }
    return Outputs{seen.back()};
  };
  EXPECT_LT(ratio(branching, 1000), 40);
  EXPECT_LT(ratio([](int n) { return rows(n, true); }, 200), 40);
  // One tensor that every step reads, over many windows.
  EXPECT_LT(ratio(
                [](int n) {
                  const LazyTensor bias = grown_input({4}), w = grown_input({4, 4});
                  LazyTensor h = grown_input({2, 4});
                  for (int i = 0; i < n; ++i) h = tanh(matmul(h, w) + bias);
                  return Outputs{h};
                },
                500),
            40);
}

TEST(Growth, CopiesIntoOneBufferTakeNearLinearTime) {
  // Each part is computed from the output of the first step, and copied: arena buffers 2 and 3 are that
  // output and what the parts are copied to.
  const auto parts = [](int n) {
    Plan plan = empty_plan(2 + n);
    plan.buffers[3].bytes *= n;
    plan.steps.push_back(pointwise_step({0}, {2}));
    for (int i = 0; i < n; ++i) {
      plan.steps.push_back(pointwise_step({0, 2}, {4 + i}));
      plan.steps.push_back(pointwise_step({4 + i}, {3}));
      plan.steps.back().operands[1].offset = i * kUnit;
    }
    plan.steps.push_back(pointwise_step({3}, {1}));
    return plan;
  };
  Plan few = parts(100);
  choose_layouts(few);
  EXPECT_EQ(few.steps.size(), 102U) << "the parts are written in place";
  const auto seconds = [&](int n) { return best_seconds([&] { return parts(n); }, choose_layouts); };
  EXPECT_LT(seconds(32000) / seconds(2000), 80);
}

TEST(Growth, CopiesOfOneBufferTakeNearLinearTime) {
  const auto copies = [](int n) {
    Plan plan = empty_plan(1 + n);
    plan.steps.push_back(pointwise_step({0}, {2}));
    for (int i = 0; i < n; ++i) {
      plan.steps.push_back(pointwise_step({2}, {3 + i}));
      plan.steps.push_back(pointwise_step({3 + i}, {1}));
    }
    return plan;
  };
  Plan few = copies(100);
  choose_layouts(few);
  EXPECT_EQ(few.steps.size(), 101U) << "the copies are left out";
  const auto seconds = [&](int n) { return best_seconds([&] { return copies(n); }, choose_layouts); };
  EXPECT_LT(seconds(8000) / seconds(500), 80);
}

TEST(Growth, StepsThatWaitForOneBufferTakeNearLinearTime) {
  // All read what the first writes, and are asked for one by one.
  const auto readers = [](int n) {
    Plan plan = empty_plan(1);
    plan.steps.push_back(pointwise_step({0}, {2}));
    for (int i = 0; i < n; ++i) plan.steps.push_back(pointwise_step({2}, {1}));
    plan.steps.push_back(pointwise_step({0}, {1}));
    return StepGraph(plan);
  };
  const auto seconds = [&](int n) {
    return best_seconds([&] { return readers(n); },
                        [](const StepGraph& graph) {
                          std::vector<std::uint32_t> order(graph.size());
                          std::iota(order.begin(), order.end(), 0U);
                          WaitingBytes bytes(graph, order, 0);
                          for (std::size_t s = 0; s + 1 < order.size(); ++s) bytes.pass(order[s]);
                          for (std::size_t s = 0; s + 1 < order.size(); ++s) {
                            const auto waiting = bytes.to_run_before(order.back());
                            if (waiting != order[s]) {
                              ADD_FAILURE() << "step " << s << " is not the first that waits";
                              return;
                            }
                            bytes.run(*waiting);
                          }
                        });
  };
  EXPECT_LT(seconds(32000) / seconds(2000), 80);
}

}  // namespace
}  // namespace caldera::testing
