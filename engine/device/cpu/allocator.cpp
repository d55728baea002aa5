#include "engine/device/cpu/allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>

#include "engine/tensor/error.h"

#ifdef __linux__
#include <sys/mman.h>
#endif
#include <unistd.h>

namespace caldera::cpu {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaching = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif
#else
constexpr bool kCaching = true;
#endif

constexpr std::size_t kSmallest = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::byte* system_block(std::size_t bytes) {
  if (!kCaching) {  // exactly as long as asked for
    void* exact = nullptr;
    return posix_memalign(&exact, 64, bytes) == 0 ? static_cast<std::byte*>(exact) : nullptr;
  }
  const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : 64;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, rounded);
#ifdef __linux__
  // Large arenas are walked from end to end at every replay: fewer, larger pages cost fewer misses.
  if (data != nullptr && alignment == kHugePage) (void)madvise(data, rounded, MADV_HUGEPAGE);
#endif
  return static_cast<std::byte*>(data);
}

}  // namespace

std::uint64_t system_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
}

/// A storage whose memory goes back to the allocator. Keeps the allocator alive.
class Allocator::Block final : public Storage {
 public:
  Block(std::shared_ptr<Allocator> owner, std::byte* data, int size_class, std::size_t bytes)
      : Storage(Device::cpu(), bytes), owner_(std::move(owner)), data_(data), size_class_(size_class) {}
  ~Block() override { owner_->give_back(data_, size_class_, bytes()); }
  std::byte* host_data() override { return data_; }

 private:
  std::shared_ptr<Allocator> owner_;
  std::byte* data_;
  int size_class_;
};

Allocator::Allocator()
    : memory_(system_memory_bytes()),
      cache_limit_(std::max<std::size_t>(std::size_t{64} << 20, memory_ / 4)) {}

Allocator::~Allocator() { trim(); }

int Allocator::class_of(std::size_t bytes) {
  if (bytes <= kSmallest) return 0;
  const int power = std::bit_width(bytes - 1) - 1;  // 2^power < bytes <= 2^(power + 1)
  const std::size_t quarter = std::size_t{1} << (power - 2);
  const auto step = static_cast<int>((bytes - 1 - (std::size_t{1} << power)) / quarter);  // 0..3
  return 1 + (power - 6) * 4 + step;
}

std::size_t Allocator::class_bytes(int size_class) {
  if (size_class == 0) return kSmallest;
  const int power = (size_class - 1) / 4 + 6;
  const auto step = static_cast<std::size_t>((size_class - 1) % 4);
  return (std::size_t{1} << power) + (step + 1) * (std::size_t{1} << (power - 2));
}

StoragePtr Allocator::allocate(std::size_t bytes) {
  // The system would promise more than it has, and end the process when the promise is called in.
  if (memory_ > 0 && bytes > memory_)
    throw DeviceError("cpu: cannot allocate " + std::to_string(bytes) + " bytes: this machine has " +
                      std::to_string(memory_));
  const int size_class = class_of(bytes);
  std::byte* data = take(size_class, bytes);
  try {
    return std::make_shared<Block>(shared_from_this(), data, size_class, bytes);
  } catch (...) {
    give_back(data, size_class, bytes);
    throw;
  }
}

std::byte* Allocator::take(int size_class, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    auto& list = free_[static_cast<std::size_t>(size_class)];
    if (!list.empty()) {
      std::byte* data = list.back();
      list.pop_back();
      cached_bytes_ -= class_bytes(size_class);
      count(bytes);
      return data;
    }
  }
  // Without a cache the block ends where the request ends: a sanitizer sees one byte too far.
  const std::size_t wanted = kCaching ? class_bytes(size_class) : std::max(bytes, std::size_t{1});
  std::byte* data = system_block(wanted);
  if (data == nullptr) {
    trim();
    data = system_block(wanted);
  }
  if (data == nullptr)
    throw DeviceError("cpu: out of memory: cannot allocate " + std::to_string(bytes) + " bytes");
  const std::lock_guard lock(mutex_);
  ++counters_.system_blocks;
  count(bytes);
  return data;
}

void Allocator::count(std::size_t bytes) {
  counters_.live_bytes += bytes;
  counters_.peak_bytes = std::max(counters_.peak_bytes, counters_.live_bytes);
}

void Allocator::give_back(std::byte* data, int size_class, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    counters_.live_bytes -= bytes;
    const std::size_t size = class_bytes(size_class);
    if (kCaching && cached_bytes_ + size <= cache_limit_) {
      try {
        free_[static_cast<std::size_t>(size_class)].push_back(data);
        cached_bytes_ += size;
        return;
      } catch (const std::bad_alloc&) {  // no memory for the list: free the block instead
      }
    }
  }
  std::free(data);
}

void Allocator::trim() {
  const std::lock_guard lock(mutex_);
  for (auto& list : free_) {
    for (std::byte* data : list) std::free(data);
    list.clear();
  }
  cached_bytes_ = 0;
}

Allocator::Counters Allocator::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace caldera::cpu
