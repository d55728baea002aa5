// What a node costs, and that it is given back. This program counts its heap allocations.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace {

std::atomic<std::int64_t> news{0};
std::atomic<std::int64_t> live{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  void* block = alignment > alignof(std::max_align_t)
                    ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                    : std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  news.fetch_add(1, std::memory_order_relaxed);
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

static_assert(sizeof(Node) <= 256, "a million nodes should take a quarter of a gigabyte at most");

LazyTensor leaf(const Shape& shape) {
  return LazyTensor::from_vector(std::vector<float>(static_cast<std::size_t>(shape.numel()), 1.5F), shape,
                                 Device::cpu());
}

/// Heap allocations for each node that `build` makes. Node ids count the nodes.
template <class Build>
double allocations_per_node(Build build) {
  constexpr int kRounds = 100;
  const LazyTensor before = leaf({1});
  const std::int64_t start = news;
  for (int i = 0; i < kRounds; ++i) build();
  const std::int64_t made = news - start;
  const LazyTensor after = leaf({1});
  return static_cast<double>(made) / static_cast<double>(after.node_id() - before.node_id() - 1);
}

TEST(NodeMemory, TwoAllocationsBuildANode) {
  const LazyTensor x = leaf({4, 6});
  const LazyTensor row = leaf({6});
  const LazyTensor column = leaf({4, 1});
  EXPECT_EQ(allocations_per_node([&] { exp(x); }), 1.0);
  EXPECT_EQ(allocations_per_node([&] { x + x; }), 1.0);
  EXPECT_LE(allocations_per_node([&] { x * 2.5; }), 2.0);
  EXPECT_LE(allocations_per_node([&] { x + row; }), 2.0);
  EXPECT_LE(allocations_per_node([&] { x + column; }), 2.0);
  EXPECT_LE(allocations_per_node([&] { reshape(x, {3, 8}); }), 2.0);
  EXPECT_LE(allocations_per_node([&] { broadcast_to(column, {4, 6}); }), 2.0);
  EXPECT_LE(allocations_per_node([&] { slice(x, 0, 1, 3); }), 2.0);
  EXPECT_LE(allocations_per_node([&] { matmul(transpose(x), x); }), 2.0);
  EXPECT_LE(allocations_per_node([&] { sum(x, 1, true); }), 3.0);  // two are lists of axes
}

TEST(NodeMemory, DestructionGivesEverythingBack) {
  const LazyTensor x = leaf({4, 6});
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
  const LazyTensor x = leaf({2});
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
  const LazyTensor x = leaf({2});
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

TEST(NodeMemory, EvaluationReleasesHistory) {
  const ScopedSettings scope;
  const auto chain = [](const LazyTensor& from) {
    LazyTensor y = from;
    for (int i = 0; i < 1000; ++i) y = y + from;
    return y;
  };
  const LazyTensor x = leaf({2});
  chain(x).eval();  // fills the plan cache
  const std::int64_t before = live;
  const LazyTensor y = chain(x);
  EXPECT_GE(live, before + 1000);
  y.eval();
  EXPECT_LT(live, before + 20) << "only the result and its storage are left";
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(2, 1501.5F));
}

}  // namespace
}  // namespace caldera::testing
