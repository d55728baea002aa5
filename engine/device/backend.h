// Backend: what the runtime asks of a device. One implementation a folder: cpu/, vulkan/, null/.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/cache_stats.h"
#include "engine/device/device_info.h"
#include "engine/device/generated_code.h"
#include "engine/device/memory_budget.h"
#include "engine/plan/device_traits.h"
#include "engine/plan/inner_plan.h"
#include "engine/plan/plan.h"
#include "engine/tensor/storage.h"

namespace caldera {

/// One of the variants of the matrix product that a device has.
struct ProductVariantInfo {
  std::string name;     // that pins it: CALDERA_TUNE=<name>, read while the device is opened
  std::string why_not;  // what the device lacks for it, whatever the product; empty: nothing
};

/// One of the ways in which a device computes attention.
struct AttentionVariantInfo {
  std::string name;     // that pins it: CALDERA_VULKAN_ATTENTION=<name>, read while the device is opened
  std::string why_not;  // what the device lacks for it; empty: nothing
  // Whether weights are rounded to the type of the operands before they are multiplied with values.
  bool rounds_weights = false;
};

/// The variant by which a step is computed.
struct StepVariant {
  std::string_view name;  // empty: there is one only, or the step has nothing to compute
  std::string why_not;    // why it is not the one that was pinned; empty if it is, or none was pinned
};

/// Fills in what the counters say of `memory`.
inline void count_memory(const MemoryBudget& memory, DeviceCounters& counters) {
  counters.reserved_bytes = memory.reserved();
  counters.reserved_peak_bytes = memory.peak();
  counters.limit_bytes = memory.limit();
  counters.trims = memory.trims();
}

/// When a step of a replay ran, on the host's steady clock.
struct StepTime {
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

/// Appends the time between its construction and its end to `times`, unless that is null.
class StepTimer {
 public:
  explicit StepTimer(std::vector<StepTime>* times) : times_(times) {
    if (times_ != nullptr) times_->push_back({std::chrono::steady_clock::now(), {}});
  }
  ~StepTimer() {
    if (times_ != nullptr) times_->back().end = std::chrono::steady_clock::now();
  }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;

 private:
  std::vector<StepTime>* times_;
};

/// Says where a plan's inputs and outputs are stored in one replay, and the values of its scalar arguments.
struct Bindings {
  struct Slot {
    Storage* storage = nullptr;
    std::int64_t byte_offset = 0;
  };
  std::vector<Slot> slots;  // Plan::input_count inputs, then Plan::output_count outputs
  // Bits of each value in the low bytes (f32 and i32: low 4; f64, i64: all 8).
  std::vector<std::uint64_t> scalars;
  /// Set where someone measures: by the time that `wait` for the ticket returns, the device has appended a
  /// time for each step of the plan, in order, if it can tell; otherwise it leaves the list empty. Steps that
  /// share a dispatch share its time. The list must live until then.
  std::vector<StepTime>* step_times = nullptr;
  /// Once it is true, loops of the plan end before their next turns, by CancelledError. May be null.
  const std::atomic<bool>* is_cancelled = nullptr;
};

/// A plan made ready for one device: kernels compiled, arena sized. Owned by the plan cache.
class Executable {
 public:
  explicit Executable(std::shared_ptr<const Plan> plan);
  virtual ~Executable() = default;
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<const Plan>& plan_ptr() const { return plan_; }
  /// Whether a step may fail for what its inputs are (FailedSteps).
  bool may_fail() const { return may_fail_; }
  /// Whether steps of it run plans of their own: see engine/device/control.
  bool runs_plans() const { return runs_plans_; }
  /// Says how step number `step` of the plan is computed.
  virtual StepVariant variant_of([[maybe_unused]] std::size_t step) const { return {}; }
  /// Estimates the host and device memory that it keeps beyond the plan: prepared steps, command buffers.
  virtual std::size_t bytes() const { return 0; }

 private:
  std::shared_ptr<const Plan> plan_;
  bool may_fail_;
  bool runs_plans_;
};

inline Executable::Executable(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)), may_fail_(caldera::may_fail(*plan_)), runs_plans_(has_control(*plan_)) {}

/// Is thrown by `submit` and `wait` where steps of a replay have failed for what their inputs are (a matrix
/// that is not positive definite), and all others ran: what does not depend on a failed step is there.
struct FailedSteps {
  std::exception_ptr error;        // the first step's
  std::vector<std::size_t> steps;  // of the plan, in order
};

/// A position on the device's timeline.
using Ticket = std::uint64_t;

/// A device. `allocate`, `info`, `supports`, `counters` and `prepare` may be called from any thread; `submit`
/// is called by at most `lanes` threads at a time, and where that is one, in order (the runtime's stream sees
/// to it); `upload` and `download` from any thread on storages that no submitted work uses at the time.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const DeviceInfo& info() const = 0;
  /// Whether kernels may compute with the type.
  virtual bool supports(DType type) const = 0;
  /// Returns what plans for it are compiled for; the same at every call.
  virtual DeviceTraits traits() const { return {}; }
  /// The variants of the matrix product that it has been written for, on this device or another of its kind.
  /// Empty: there is one, which has no name.
  virtual std::vector<ProductVariantInfo> product_variants() const { return {}; }
  /// Lists the variants of attention. What a step does not allow (operands of f32 in cooperative matrices)
  /// takes another variant even where one is pinned.
  virtual std::vector<AttentionVariantInfo> attention_variants() const { return {}; }
  /// Whether `submit` returns while the device still computes, so that the next replay may be queued behind.
  virtual bool runs_ahead() const { return false; }
  /// Returns how many threads may call `submit` at once, the same executable included. Work that is submitted
  /// so must not share memory that any of it writes. 1 where the device orders replays itself (runs_ahead).
  virtual std::size_t lanes() const { return 1; }
  /// At least 64-byte aligned. When memory is out, gives back what is unused, here and everywhere on the
  /// device, and drops the arena; then throws OutOfMemoryError with the bytes wanted, in use and allowed.
  virtual StoragePtr allocate(std::size_t bytes) = 0;
  virtual void upload(Storage& to, std::size_t byte_offset, const void* from, std::size_t bytes) = 0;
  virtual void download(Storage& from, std::size_t byte_offset, void* to, std::size_t bytes) = 0;
  /// Compiles what the plan needs. Throws Error naming the step when a kernel cannot be built.
  virtual std::unique_ptr<Executable> prepare(std::shared_ptr<const Plan> plan) = 0;
  /// The most bytes to take from the system or driver at a time, from now on; 0: no limit. Counted are the
  /// blocks that tensors, arenas, argument tables and staging buffers are in, whether in use or kept for
  /// reuse; not counted is what a driver keeps for itself (compiled kernels, command buffers) and what the
  /// host keeps of plans and graphs. Gives back what is unused. Where more is in use already, nothing more is
  /// taken until it fits.
  virtual void set_memory_limit(std::uint64_t bytes) = 0;
  /// Gives unused memory back now, waiting for work in flight: idle arenas, free and cached blocks, staging.
  virtual void trim() {}
  /// Queues one replay behind all earlier ones. Throws OutOfMemoryError, with nothing queued, when the plan's
  /// arena does not fit. `bindings` need not outlive the call; the storages must live until the ticket is
  /// waited for. A device that computes on the calling thread returns when done.
  virtual Ticket submit(Executable& executable, const Bindings& bindings) = 0;
  /// Returns when everything up to `ticket` is done and visible to the host. Throws DeviceError if the device
  /// is lost.
  virtual void wait(Ticket ticket) = 0;
  virtual DeviceCounters counters() const = 0;
  /// Counts what the device keeps to be used again; the kind `plans` is the runtime's. Nothing of kinds that
  /// it does not have.
  virtual CacheStats cache_stats(CacheKind) const { return {}; }
  /// From now on; drops what is beyond it.
  virtual void set_cache_limit(CacheKind, std::uint64_t) {}
  /// Shows what is generated for a step; null where nothing is.
  virtual CodeWriter code_writer() const { return nullptr; }
  /// Writes to disk what spares the next process work, such as compiled kernels. Called when the process ends
  /// while the device is open; a failure is nobody's concern.
  virtual void save_caches() noexcept {}
};

}  // namespace caldera
