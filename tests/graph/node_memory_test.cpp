// What a node costs, and that it is given back. This program counts its heap allocations.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace {

std::atomic<std::int64_t> news{0};
std::atomic<std::int64_t> new_bytes{0};
std::atomic<std::int64_t> live{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  void* block = alignment > alignof(std::max_align_t)
                    ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                    : std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  news.fetch_add(1, std::memory_order_relaxed);
  new_bytes.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  live.fetch_add(1, std::memory_order_relaxed);
  return block;
}
void give_back(void* block) noexcept {
  if (block != nullptr) live.fetch_sub(1, std::memory_order_relaxed);
  std::free(block);
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 0); }
void* operator new[](std::size_t bytes) { return counted(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return counted(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return counted(bytes, static_cast<std::size_t>(a));
}
void operator delete(void* block) noexcept { give_back(block); }
void operator delete[](void* block) noexcept { give_back(block); }
void operator delete(void* block, std::size_t) noexcept { give_back(block); }
void operator delete[](void* block, std::size_t) noexcept { give_back(block); }
void operator delete(void* block, std::align_val_t) noexcept { give_back(block); }
void operator delete[](void* block, std::align_val_t) noexcept { give_back(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { give_back(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { give_back(block); }

namespace caldera::testing {
namespace {

LazyTensor filled_leaf(const Shape& shape) {
  return LazyTensor::from_vector(std::vector<float>(static_cast<std::size_t>(shape.numel()), 1.5F), shape,
                                 Device::cpu());
}

struct Cost {
  double allocations = 0;
  double bytes = 0;
};

/// What `build` takes from the heap for each node that it makes. Node ids count the nodes.
template <class Build>
Cost cost_of(Build build) {
  constexpr int kRounds = 100;
  const LazyTensor before = filled_leaf({1});
  const std::int64_t start = news;
  const std::int64_t start_bytes = new_bytes;
  for (int i = 0; i < kRounds; ++i) build();
  const std::int64_t made = news - start;
  const std::int64_t made_bytes = new_bytes - start_bytes;
  const LazyTensor after = filled_leaf({1});
  const auto nodes = static_cast<double>(after.node_id() - before.node_id() - 1);
  return {static_cast<double>(made) / nodes, static_cast<double>(made_bytes) / nodes};
}

struct Building {
  const char* name;
  std::function<void()> build;
};

TEST(NodeMemory, OneAllocationBuildsANode) {
  const LazyTensor x = filled_leaf({4, 6});
  const LazyTensor row = filled_leaf({6});
  const LazyTensor column = filled_leaf({4, 1});
  const LazyTensor deep = filled_leaf({2, 3, 4, 5});
  const LazyTensor indices = LazyTensor::from_vector(std::vector<std::int32_t>{1, 0}, {2}, Device::cpu());
  const LazyTensor two = filled_leaf({2});
  const LazyTensor truth = x == x;
  const Device cpu = Device::cpu();
  const Building buildings[] = {
      {"exp", [&] { exp(x); }},
      {"add", [&] { x + x; }},
      {"multiply by a number", [&] { x * 2.5; }},
      {"add a row", [&] { x + row; }},
      {"add a column", [&] { x + column; }},
      {"compare", [&] { static_cast<void>(x < x); }},
      {"where", [&] { where(truth, x, x); }},
      {"astype", [&] { astype(x, DType::i32); }},
      {"sum of all", [&] { sum(x); }},
      {"sum along an axis", [&] { sum(x, 1); }},
      {"sum along an axis, kept", [&] { sum(x, 1, true); }},
      {"max along axes",
       [&] {
         max(deep, {0, 2}, true);
       }},
      {"mean", [&] { mean(deep, -1); }},
      {"matmul", [&] { matmul(transpose(x), x); }},
      {"take", [&] { take(x, indices); }},
      {"scatter_add", [&] { scatter_add(row, indices, two); }},
      {"reshape",
       [&] {
         reshape(x, {3, 8});
       }},
      {"transpose", [&] { transpose(x); }},
      {"transpose of rank 4", [&] { transpose(deep); }},
      {"swapaxes", [&] { swapaxes(deep, 0, 2); }},
      {"expand_dims", [&] { expand_dims(x, 1); }},
      {"broadcast_to",
       [&] {
         broadcast_to(column, {4, 6});
       }},
      {"slice", [&] { slice(x, 0, 1, 3); }},
      {"slice of rank 4", [&] { slice(deep, 2, 1, 3); }},
      {"iota",
       [&] {
         iota({4, 6}, 0, DType::i32, cpu);
       }},
      {"full",
       [&] {
         LazyTensor::full({4, 6}, 2, DType::f32, cpu);
       }},
      {"random_uniform",
       [&] {
         random_uniform({4, 6}, 1, DType::f32, cpu);
       }},
      {"stop_gradient", [&] { stop_gradient(x); }},
  };
  for (const Building& building : buildings) {
    const Cost cost = cost_of(building.build);
    EXPECT_EQ(cost.allocations, 1.0) << building.name;
    EXPECT_LE(cost.bytes, 256) << building.name;
  }
}

TEST(NodeMemory, ListsInTheCallCostWhatTheyAre) {
  // A list of axes or tensors that the caller makes is one allocation more, or a few among several nodes.
  const LazyTensor x = filled_leaf({4, 6});
  const LazyTensor deep = filled_leaf({2, 3, 4});
  EXPECT_EQ(cost_of([&] { permute_dims(deep, {2, 0, 1}); }).allocations, 2.0);
  EXPECT_LE(cost_of([&] { pad(x, {1, 0}, {0, 2}); }).allocations, 2.0);
  EXPECT_LE(cost_of([&] { pad(x, {1, 0}, {0, 2}); }).bytes, 256);
  EXPECT_LE(cost_of([&] { softmax(x); }).allocations, 2.0);
  EXPECT_LE(cost_of([&] { rms_norm(x, 1e-6); }).allocations, 2.0);
}

TEST(NodeMemory, DestructionGivesEverythingBack) {
  const LazyTensor x = filled_leaf({4, 6});
  const auto build = [&] {
    LazyTensor y = x;
    std::vector<LazyTensor> parts;
    for (int i = 0; i < 8; ++i) {
      y = tanh(matmul(matmul(x, transpose(y)), x)) + slice(pad(y, {1, 0}, {0, 0}), 0, 0, 4);
      parts.push_back(y);
    }
    return concatenate(parts, 1);  // more inputs than a node holds inline
  };
  build();  // whatever is allocated once
  const std::int64_t before = live;
  {
    const LazyTensor out = build();
    EXPECT_GT(live, before + 8 * 7);
  }
  EXPECT_EQ(live, before);
}

TEST(NodeMemory, DiamondsAreDestroyedOnce) {
  const LazyTensor x = filled_leaf({2});
  ASSERT_EQ(x.graph_size(), 0U);  // the first walk allocates the mutex of all graphs
  const std::int64_t before = live;
  {
    LazyTensor y = x;
    for (int i = 0; i < 60; ++i) y = y + y;  // 2^60 paths
    EXPECT_EQ(y.graph_size(), 60U);
    EXPECT_EQ(live, before + 60);
  }
  EXPECT_EQ(live, before);
}

TEST(NodeMemory, WhatIsStillHeldStays) {
  const ScopedSettings scope;
  const LazyTensor x = filled_leaf({2});
  LazyTensor middle;
  const std::int64_t before = live;
  {
    LazyTensor y = x;
    for (int i = 0; i < 10; ++i) {
      y = y + x;
      if (i == 4) middle = y;
    }
    LazyTensor other = exp(middle);
    EXPECT_EQ(live, before + 11);
  }
  EXPECT_EQ(live, before + 5) << "five nodes lead to the one that is held";
  EXPECT_EQ(middle.to_vector<float>(), std::vector<float>(2, 9.0F));
}

TEST(NodeMemory, AHistoryGoesWithItsValue) {
  const ScopedSettings scope;
  const auto chain = [](const LazyTensor& from, const LazyTensor& step) {
    LazyTensor y = from;
    for (int i = 0; i < 1000; ++i) y = y + step;
    return y;
  };
  const LazyTensor x = filled_leaf({2});
  chain(x, x).eval();  // fills the plan cache
  const std::int64_t before = live;
  LazyTensor y = chain(x, x);
  y.eval();
  EXPECT_GE(live, before + 1000) << "x is there: y can still be differentiated";
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(2, 1501.5F));
  y = LazyTensor();
  EXPECT_LT(live, before + 20);
}

TEST(NodeMemory, WhatNothingCanBeDifferentiatedByHasNoHistory) {
  const ScopedSettings scope;
  const auto chain = [] {
    LazyTensor y = filled_leaf({2});
    for (int i = 0; i < 1000; ++i) y = y + 1.0;
    return y;
  };
  chain().eval();  // fills the plan cache
  const std::int64_t before = live;
  const LazyTensor y = chain();
  y.eval();
  EXPECT_LT(live, before + 20) << "only the result and its storage are left";
}

}  // namespace
}  // namespace caldera::testing
