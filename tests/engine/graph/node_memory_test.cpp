// What nodes take: their size, shapes that are kept once, memory that threads give back, numbers.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <thread>
#include <vector>

#include "engine/base/small_memory.h"
#include "engine/caldera.h"
#include "engine/tensor/interned_shape.h"
#include "tests/support/sanitizers.h"

namespace caldera {
namespace {

std::size_t heap_bytes() { return mallinfo2().uordblks; }

TEST(NodeMemory, ANodeOfTwoInputsTakesLessThan160Bytes) {
  if (caldera::testing::kSanitized) GTEST_SKIP() << "sanitizers: the heap has no count";
  const LazyTensor x = LazyTensor::zeros({4}).eval();
  trim_small_memory();
  constexpr std::size_t kNodes = 10'000;
  const std::size_t before = heap_bytes();
  LazyTensor sum = x;
  for (std::size_t i = 0; i < kNodes; ++i) sum = sum + x;
  const std::size_t each = (heap_bytes() - before) / kNodes;
  EXPECT_LE(each, 160U);
  EXPECT_GE(each, sizeof(Node)) << "the heap's count does not see nodes";
}

TEST(NodeMemory, DroppedNodesAreUsedAgain) {
  const LazyTensor x = LazyTensor::zeros({4}).eval();
  const auto build = [&] {
    LazyTensor sum = x;
    for (int i = 0; i < 1000; ++i) sum = sum + x;
  };
  build();
  const std::size_t before = heap_bytes();
  for (int i = 0; i < 100; ++i) build();
  EXPECT_LE(heap_bytes(), before + 4096);
}

TEST(NodeMemory, GoesBackWithItsThreadAndWithTrim) {
  const LazyTensor x = LazyTensor::zeros({4}).eval();
  const auto build = [&] {
    LazyTensor sum = x;
    for (int i = 0; i < 5000; ++i) sum = sum + x;
  };
  std::thread(build).join();  // whatever a first thread takes for good
  const std::size_t before = heap_bytes();
  std::thread(build).join();
  EXPECT_LE(heap_bytes(), before + 4096);
  build();
  trim();
  EXPECT_LE(heap_bytes(), before + 4096);
}

TEST(NodeMemory, OfAHugeGraphIsNotKept) {
  const LazyTensor x = LazyTensor::zeros({4}).eval();
  trim_small_memory();
  const std::size_t before = heap_bytes();
  {
    LazyTensor sum = x;
    for (int i = 0; i < 200'000; ++i) sum = sum + x;
  }
  EXPECT_LE(heap_bytes(), before + kMostSmallMemory + (kMostSmallMemory / 4));
}

TEST(NodeMemory, IsFreedByWhicheverThreadDropsTheLastHandle) {
  const LazyTensor x = LazyTensor::zeros({4}).eval();
  std::vector<LazyTensor> made;
  made.reserve(1000);
  for (int i = 0; i < 1000; ++i) made.push_back(x + static_cast<double>(i));
  std::thread([&] { made.clear(); }).join();
  for (int i = 0; i < 1000; ++i) made.push_back(x + static_cast<double>(i));
  EXPECT_EQ(made[7].to_vector<float>(), std::vector<float>(4, 7));
}

TEST(NodeIds, RiseFromInputsToWhatIsComputedOfThemInAnyThread) {
  LazyTensor x = LazyTensor::zeros({4});
  for (int turn = 0; turn < 20; ++turn) {
    std::thread([&] {
      for (int i = 0; i < 100; ++i) {
        const LazyTensor next = x + x;
        ASSERT_GT(next.node_id(), x.node_id());
        x = next;
      }
    }).join();
    const LazyTensor next = tanh(x);
    ASSERT_GT(next.node_id(), x.node_id());
    x = next;
  }
}

TEST(InternedShapes, AreEqualWhereTheirExtentsAre) {
  const InternedShape a(Shape{2, 3}), b(Shape{2, 3}), c(Shape{3, 2}), scalar(Shape{});
  EXPECT_EQ(a, b);
  EXPECT_EQ(&a.get(), &b.get());
  EXPECT_FALSE(a == c);
  EXPECT_FALSE(a == scalar);
  EXPECT_EQ(scalar.get().rank(), 0);
  EXPECT_EQ(c.get(), (Shape{3, 2}));
}

// The last, as the table stays full: from here on shapes belong to those who have them.
TEST(InternedShapes, AreBoundedAndStillRightBeyondTheBound) {
  for (std::size_t i = 0; i <= kMostInternedShapes; ++i)
    InternedShape(Shape{static_cast<std::int64_t>(i), 7});
  EXPECT_EQ(interned_shapes(), kMostInternedShapes);
  const InternedShape own(Shape{5, 1, 5, 1}), other(Shape{5, 1, 5, 1}), third(Shape{5, 1, 5, 2});
  const InternedShape copy = own;  // NOLINT(performance-unnecessary-copy-initialization): what is tested
  EXPECT_NE(&own.get(), &other.get());
  EXPECT_NE(&own.get(), &copy.get());
  EXPECT_EQ(own, other);
  EXPECT_EQ(own, copy);
  EXPECT_FALSE(own == third);

  const auto value = [](std::int64_t last) {
    const LazyTensor x = LazyTensor::full({3, 1, 3, last}, 2);
    return sum(x * x + x).item<float>();
  };
  EXPECT_EQ(value(11), 6 * 3 * 3 * 11);
  const std::size_t plans = plan_cache_stats().misses;
  EXPECT_EQ(value(11), 6 * 3 * 3 * 11);
  EXPECT_EQ(plan_cache_stats().misses, plans) << "equal graphs of such shapes have one plan";
  EXPECT_EQ(value(13), 6 * 3 * 3 * 13);
}

}  // namespace
}  // namespace caldera
