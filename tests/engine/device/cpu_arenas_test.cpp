// Arenas of replays that run side by side: one each, within the memory limit, and none too large for long.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "engine/base/error.h"
#include "engine/device/cpu/host/arenas.h"
#include "tests/support/sanitizers.h"

namespace caldera::testing {
namespace {

constexpr std::size_t kArenaMiB = std::size_t{1} << 20;

class CpuArenas : public ::testing::Test {
 protected:
  std::uint64_t reserved() const { return allocator_->memory().reserved(); }

  std::shared_ptr<cpu::Allocator> allocator_ = std::make_shared<cpu::Allocator>();
  cpu::Arenas arenas_{*allocator_};
};

TEST_F(CpuArenas, ReplaysAtOnceHaveBlocksOfTheirOwnAndKeepThem) {
  std::byte* kept = nullptr;
  {
    const auto first = arenas_.take(kArenaMiB, 1), second = arenas_.take(2 * kArenaMiB, 2);
    ASSERT_NE(first.data(), nullptr);
    EXPECT_NE(first.data(), second.data());
    kept = first.data();
  }
  const std::uint64_t before = reserved();
  EXPECT_EQ(arenas_.take(kArenaMiB / 2, 3).data(), kept) << "the smallest that is large enough";
  EXPECT_EQ(reserved(), before);
  EXPECT_EQ(arenas_.take(0, 4).data(), nullptr);
}

TEST_F(CpuArenas, WhatDoesNotFitBesideAnotherWaitsForIt) {
  allocator_->memory().set_limit(12 * kArenaMiB);
  std::optional<std::thread> other;
  std::atomic<bool> has_room = false;
  {
    const auto held = arenas_.take(8 * kArenaMiB, 1);
    other.emplace([&] {
      const auto waited = arenas_.take(10 * kArenaMiB, 2);
      has_room = waited.data() != nullptr;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(has_room);
  }
  other->join();
  EXPECT_TRUE(has_room);
  EXPECT_LE(allocator_->memory().peak(), 12 * kArenaMiB);
  EXPECT_THROW(arenas_.take(16 * kArenaMiB, 3), OutOfMemoryError) << "nobody could make room for that";
  EXPECT_NE(arenas_.take(10 * kArenaMiB, 4).data(), nullptr);
}

TEST_F(CpuArenas, AgeLetsGoOfWhatIsTooLarge) {
  arenas_.take(64 * kArenaMiB, 1);
  for (std::uint64_t now = 2; now < 100; ++now) arenas_.take(kArenaMiB, now);
  arenas_.age(1);
  EXPECT_GE(reserved(), 64 * kArenaMiB) << "replay 1 needed it";
  arenas_.age(2);
  EXPECT_LT(reserved(), 8 * kArenaMiB);
  arenas_.take(8 * kArenaMiB, 100);
  arenas_.take(2 * kArenaMiB, 101);
  arenas_.age(101);
  EXPECT_GE(reserved(), 8 * kArenaMiB) << "a quarter was needed";
}

TEST_F(CpuArenas, BlocksThatNobodyTakesLeaveTheCache) {
  if (!kKeepsMemory) GTEST_SKIP() << "AddressSanitizer: no memory is kept";
  std::vector<StoragePtr> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(allocator_->allocate(kArenaMiB));
  blocks.clear();
  allocator_->age();  // a period in which they were taken
  EXPECT_GE(reserved(), 8 * kArenaMiB);
  for (int i = 0; i < 10; ++i) {
    const StoragePtr one = allocator_->allocate(kArenaMiB), two = allocator_->allocate(kArenaMiB);
  }
  allocator_->age();
  EXPECT_GE(reserved(), 2 * kArenaMiB) << "two were in use at once";
  EXPECT_LT(reserved(), 3 * kArenaMiB);
}

}  // namespace
}  // namespace caldera::testing
