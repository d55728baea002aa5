#include "engine/device/cpu/host/allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>

#include "engine/base/error.h"
#include "engine/base/small_allocator.h"

#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
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
constexpr std::size_t kWorthFitting = std::size_t{1}
                                      << 10;  // a fifth of a smaller block is no more than 256 bytes
constexpr std::size_t kWorthAging = std::size_t{1} << 20;      // of cached bytes
constexpr std::size_t kWorthTrimming = std::size_t{16} << 20;  // the C library walks its whole heap for it

std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (std::max(bytes, std::size_t{1}) + multiple - 1) / multiple * multiple;
}

/// nullptr where the system has no more. In huge pages if `bytes` is a multiple of theirs.
std::byte* system_block(std::size_t bytes) {
  if (!kCaching) {  // exactly as long as asked for
    void* exact = nullptr;
    return posix_memalign(&exact, 64, bytes) == 0 ? static_cast<std::byte*>(exact) : nullptr;
  }
  const std::size_t alignment = bytes % kHugePage == 0 ? kHugePage : 64;
  void* data = nullptr;  // not aligned_alloc: that wants a multiple of the alignment
  if (posix_memalign(&data, alignment, bytes) != 0) return nullptr;
#ifdef __linux__
  // Large arenas are walked from end to end at every replay: fewer, larger pages cost fewer misses.
  if (alignment == kHugePage) (void)madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return static_cast<std::byte*>(data);
}

}  // namespace

void trim_heap() {
#ifdef __GLIBC__
  (void)malloc_trim(0);
#endif
}

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

// The system would promise more than it has, and end the process when the promise is called in: so the
// machine's memory bounds the budget.
Allocator::Allocator()
    : memory_(system_memory_bytes()),
      cache_limit_(std::max<std::size_t>(std::size_t{64} << 20, system_memory_bytes() / 4)),
      reclaimer_(memory_, Pressure::light, [this] { trim(); }) {}

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

/// Without a cache the block ends where the request ends: a sanitizer sees one byte too far.
std::size_t Allocator::system_bytes(int size_class, std::size_t bytes) {
  if (!kCaching) return std::max(bytes, std::size_t{1});
  if (size_class == kExact) return round_up(bytes, 64);
  const std::size_t size = class_bytes(size_class);
  return size < Slabs::kLargest ? size : round_up(size, kHugePage);
}

StoragePtr Allocator::allocate(std::size_t bytes) {
  // Within a limit nothing is padded that would be missed: what fits is what tensors take.
  const bool is_scarce = memory_.limit() > 0 && bytes > kWorthFitting;
  int size_class = is_scarce || bytes > memory_.bound() ? kExact : class_of(bytes);
  std::byte* data = take(size_class, bytes);
  try {
    return make_small_shared<Block>(shared_from_this(), data, size_class, bytes);
  } catch (...) {
    give_back(data, size_class, bytes);
    throw;
  }
}

/// May change the class to kExact.
std::byte* Allocator::take(int& size_class, std::size_t bytes) {
  if (bytes <= memory_.bound()) {
    if (std::byte* data = take_cached(size_class, bytes)) return data;
    if (std::byte* data = take_from_system(size_class, bytes)) return data;
    for (const Pressure pressure : {Pressure::light, Pressure::heavy}) {
      memory_.relieve(pressure);
      if (std::byte* data = take_from_system(size_class, bytes)) return data;
      if (std::byte* data = take_from_system(kExact, bytes)) {
        size_class = kExact;
        return data;
      }
    }
  }
  throw OutOfMemoryError("cpu: " + memory_.out_of_memory(bytes, std::to_string(system_memory_bytes()) +
                                                                    " that this machine has"));
}

std::byte* Allocator::take_cached(int size_class, std::size_t bytes) {
  if (size_class == kExact) return nullptr;
  const std::lock_guard lock(mutex_);
  auto& [list, least] = free_[static_cast<std::size_t>(size_class)];
  if (list.empty()) return nullptr;
  std::byte* data = list.back();
  list.pop_back();
  least = std::min(least, list.size());
  cached_bytes_ -= system_bytes(size_class, bytes);
  count(bytes);
  return data;
}

/// nullptr where the budget or the system has no more.
std::byte* Allocator::take_from_system(int size_class, std::size_t bytes) {
  const std::size_t wanted = system_bytes(size_class, bytes);
  if (!memory_.reserve(wanted)) return nullptr;
  std::byte* data = nullptr;
  if (is_of_slab(size_class)) {
    const std::lock_guard lock(mutex_);
    data = slabs_.take(wanted);
  } else {
    data = system_block(wanted);
  }
  if (data == nullptr) {
    memory_.release(wanted);
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  ++counters_.system_blocks;
  count(bytes);
  return data;
}

void Allocator::count(std::size_t bytes) {
  counters_.live_bytes += bytes;
  memory_.count_tensors(static_cast<std::int64_t>(bytes));
  counters_.peak_bytes = std::max(counters_.peak_bytes, counters_.live_bytes);
}

void Allocator::give_back(std::byte* data, int size_class, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    counters_.live_bytes -= bytes;
    memory_.count_tensors(-static_cast<std::int64_t>(bytes));
    const std::size_t size = system_bytes(size_class, bytes);
    if (kCaching && size_class != kExact && memory_.reserved() <= memory_.bound() &&
        cached_bytes_ + size <= cache_limit_) {
      try {
        free_[static_cast<std::size_t>(size_class)].blocks.push_back(data);
        cached_bytes_ += size;
        return;
      } catch (const std::bad_alloc&) {  // no memory for the list: free the block instead
      }
    }
  }
  if (is_of_slab(size_class)) {
    const std::lock_guard lock(mutex_);
    free_block(data, size_class, bytes);
  } else {
    free_block(data, size_class, bytes);
  }
}

/// Of a slab: under mutex_.
void Allocator::free_block(std::byte* data, int size_class, std::size_t bytes) {
  if (is_of_slab(size_class))
    slabs_.give(data);
  else
    std::free(data);
  memory_.release(system_bytes(size_class, bytes));
}

bool Allocator::is_of_slab(int size_class) {
  if (!kCaching || size_class == kExact) return false;
  const std::size_t size = class_bytes(size_class);
  return size >= Slabs::kSmallest && size < Slabs::kLargest;
}

void Allocator::release_cached(int size_class, std::size_t count) {
  auto& [list, least] = free_[static_cast<std::size_t>(size_class)];
  const std::size_t size = system_bytes(size_class, 0);
  const auto end = list.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto block = list.begin(); block != end; ++block) free_block(*block, size_class, size);
  list.erase(list.begin(), end);
  least = list.size();
  cached_bytes_ -= count * size;
}

void Allocator::trim() {
  const std::lock_guard lock(mutex_);
  for (int size_class = 0; size_class < kClasses; ++size_class)
    release_cached(size_class, free_[static_cast<std::size_t>(size_class)].blocks.size());
}

void Allocator::trim(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const int size_class = class_of(bytes);
  release_cached(size_class, free_[static_cast<std::size_t>(size_class)].blocks.size());
}

void Allocator::age() {
  bool worth_trimming = false;
  {
    const std::lock_guard lock(mutex_);
    if (cached_bytes_ < kWorthAging) return;
    const std::size_t before = cached_bytes_;
    for (int size_class = 0; size_class < kClasses; ++size_class)
      release_cached(size_class, free_[static_cast<std::size_t>(size_class)].least);
    heap_bytes_ += before - cached_bytes_;
    worth_trimming = heap_bytes_ >= kWorthTrimming;
    if (worth_trimming) heap_bytes_ = 0;
  }
  if (worth_trimming) trim_heap();
}

Allocator::Counters Allocator::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace caldera::cpu
