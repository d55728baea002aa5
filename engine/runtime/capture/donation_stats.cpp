#include "engine/runtime/capture/donation_stats.h"

#include <atomic>

#include "engine/runtime/runtime.h"

namespace caldera {
namespace {

std::atomic<std::uint64_t> donated_buffers{0};
std::atomic<std::uint64_t> donated_bytes{0};

}  // namespace

void count_donation(std::size_t bytes) {
  donated_buffers.fetch_add(1, std::memory_order_relaxed);
  donated_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

DonationStats donation_stats() {
  return {.buffers = donated_buffers.load(std::memory_order_relaxed),
          .bytes = donated_bytes.load(std::memory_order_relaxed)};
}

}  // namespace caldera
