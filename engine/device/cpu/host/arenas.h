// Memory of intermediates on the CPU: a block for each replay in progress, kept for the next.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/base/adaptive_mutex.h"
#include "engine/device/cpu/host/allocator.h"
#include "engine/tensor/storage.h"

namespace caldera::cpu {

/// Thread-safe. There are as many blocks as replays ever ran at once, each as large as the largest plan that
/// ran in it: plans differ, and a program with inputs of many lengths has many plans. Under pressure
/// (MemoryBudget) idle blocks go at once and the others when their replay ends; age lets idle ones go that
/// are too large.
class Arenas {
 public:
  /// Smaller blocks are not worth the giving back.
  static constexpr std::size_t kWorthGivingBack = std::size_t{1} << 20;

  /// A block in use. Goes back when the object does.
  class Lease {
   public:
    Lease(Arenas& owner, StoragePtr block, std::uint64_t needed, std::uint64_t drops)
        : owner_(owner), block_(std::move(block)), needed_(needed), drops_(drops) {}
    ~Lease() {
      if (block_ != nullptr) owner_.give(*this);
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    /// nullptr for a lease of 0 bytes.
    std::byte* data() const { return block_ != nullptr ? block_->host_data() : nullptr; }

   private:
    friend class Arenas;
    Arenas& owner_;
    StoragePtr block_;
    std::uint64_t needed_;
    std::uint64_t drops_;
  };

  explicit Arenas(Allocator& allocator);

  /// At least `bytes`; nothing for 0. `now` counts the device's replays. Where there is no room beside the
  /// arenas of other replays, waits for them; throws OutOfMemoryError where there is none without them.
  Lease take(std::size_t bytes, std::uint64_t now);
  /// Lets idle blocks go of which no replay since number `since` has needed a quarter.
  void age(std::uint64_t since);

 private:
  struct Idle {
    StoragePtr block;
    std::uint64_t needed;  // the last replay that needed a quarter of it
  };

  StoragePtr take_idle(std::size_t bytes, std::uint64_t& needed);
  bool await_room(std::uint64_t given);
  void give(Lease& lease) noexcept;
  void drop();

  Allocator& allocator_;
  AdaptiveMutex mutex_;
  std::vector<Idle> idle_;
  std::condition_variable back_;
  std::uint64_t drops_ = 0;            // how often all of them were dropped
  std::uint64_t given_ = 0;            // how often one came back
  std::size_t in_use_ = 0;             // or about to be
  std::size_t waiting_ = 0;            // for room
  MemoryBudget::Reclaimer reclaimer_;  // last: gone before what it uses
};

}  // namespace caldera::cpu
