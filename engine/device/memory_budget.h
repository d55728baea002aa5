// Bounds what a device may take from its driver (or from the system) for all of its memory pools together.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>

namespace caldera {

/// Says how much a device gives up to make room.
enum class Pressure : std::uint8_t {
  light,  // blocks that nothing is in go back
  heavy,  // before that, what can be made again is dropped: arenas
};

/// Counts bytes taken, refuses what would exceed the limit, and knows whom to ask for memory back.
/// Thread-safe.
class MemoryBudget {
 public:
  /// `capacity`: what there is at all; 0: not known.
  explicit MemoryBudget(std::uint64_t capacity = 0) : capacity_(capacity) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  /// Counts bytes that are about to be taken. False, and nothing counted, if there are not as many left.
  bool reserve(std::uint64_t bytes);
  /// They were given back, or could not be had.
  void release(std::uint64_t bytes);

  /// 0: none. Asks everyone for memory back; what is in use stays until it is given back, and nothing
  /// more is taken until it fits.
  /// Starts the peak again.
  void set_limit(std::uint64_t bytes);
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  std::uint64_t reserved() const { return reserved_.load(std::memory_order_relaxed); }
  /// The most that was taken at any time since the limit was set.
  std::uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  /// The smaller of limit and capacity; UINT64_MAX where there is neither.
  std::uint64_t bound() const;

  /// Asks everyone for memory back, waiting for work in flight. Not to be called under a lock that a
  /// Reclaimer's function takes. Throws what those functions throw (DeviceError when the device is lost).
  void relieve(Pressure pressure);
  /// Counts how often memory was asked back.
  std::uint64_t trims() const { return trims_.load(std::memory_order_relaxed); }

  /// One who can give memory back, for as long as the object lives. A function that stands at
  /// Pressure::heavy is called before those at Pressure::light, so that what it drops goes back with the
  /// rest.
  class Reclaimer {
   public:
    Reclaimer(MemoryBudget& budget, Pressure at, std::function<void()> give_back);
    ~Reclaimer();
    Reclaimer(const Reclaimer&) = delete;
    Reclaimer& operator=(const Reclaimer&) = delete;

   private:
    friend class MemoryBudget;
    MemoryBudget& budget_;
    Pressure at_;
    std::function<void()> give_back_;
    std::list<Reclaimer*>::iterator position_;
  };

  /// Bytes that tensors take from now on, or (negative) no longer: for the messages, whichever pool has no
  /// room.
  void count_tensors(std::int64_t bytes) { tensors_.fetch_add(bytes, std::memory_order_relaxed); }

  /// Returns the text of an error: "out of memory: N bytes wanted, ..." and what to do. `what_there_is` names
  /// what bounds the device where no limit does, such as "a heap of 2147483648".
  std::string out_of_memory(std::uint64_t wanted, const std::string& what_there_is) const;

 private:
  const std::uint64_t capacity_;
  std::atomic<std::uint64_t> limit_{0}, reserved_{0}, peak_{0}, trims_{0};
  std::atomic<std::int64_t> tensors_{0};
  std::mutex mutex_;  // of the list, and held while it is called
  std::list<Reclaimer*> reclaimers_;
};

}  // namespace caldera
