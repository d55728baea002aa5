#include "engine/runtime/capture/donation_stats.h"

#include <atomic>

namespace caldera {
namespace {

std::atomic<std::uint64_t> buffers{0};
std::atomic<std::uint64_t> all_bytes{0};

}  // namespace

void count_donation(std::size_t bytes) {
  buffers.fetch_add(1, std::memory_order_relaxed);
  all_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

std::uint64_t donated_buffers() { return buffers.load(std::memory_order_relaxed); }
std::uint64_t donated_bytes() { return all_bytes.load(std::memory_order_relaxed); }

}  // namespace caldera
