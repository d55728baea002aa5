#include "engine/device/null/null_backend.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "engine/base/error.h"
#include "engine/device/backend.h"

namespace caldera {
namespace {

struct Usage {
  MemoryBudget memory;
  std::atomic<std::uint64_t> blocks = 0;
  std::atomic<std::uint64_t> peak = 0;  // in the device's life

  void take(std::uint64_t bytes) {
    if (!memory.reserve(bytes)) throw OutOfMemoryError("null: " + memory.out_of_memory(bytes, "no memory"));
    blocks.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t now = memory.reserved();
    std::uint64_t seen = peak.load();
    while (seen < now && !peak.compare_exchange_weak(seen, now)) {
    }
  }
};

class NullStorage final : public Storage {
 public:
  NullStorage(std::shared_ptr<Usage> usage, std::size_t bytes)
      : Storage(Device::null(), bytes), usage_(std::move(usage)) {
    usage_->take(bytes);
  }
  ~NullStorage() override { usage_->memory.release(bytes()); }

 private:
  std::shared_ptr<Usage> usage_;
};

class NullExecutable final : public Executable {
 public:
  using Executable::Executable;
  StoragePtr arena;
};

class NullBackend final : public Backend {
 public:
  NullBackend() {
    info_.device = Device::null();
    info_.name = "null";
    info_.type = "null";
    info_.driver = "counts, computes nothing";
  }

  const DeviceInfo& info() const override { return info_; }
  bool supports(DType) const override { return true; }
  StoragePtr allocate(std::size_t bytes) override { return std::make_shared<NullStorage>(usage_, bytes); }
  void upload(Storage&, std::size_t, const void*, std::size_t) override {}
  void download(Storage&, std::size_t, void* to, std::size_t bytes) override {
    downloads_.fetch_add(1, std::memory_order_relaxed);
    if (bytes > 0) std::memset(to, 0, bytes);
  }

  std::unique_ptr<Executable> prepare(std::shared_ptr<const Plan> plan) override {
    const std::lock_guard lock(mutex_);
    for (const Step& step : plan->steps)
      for (const StepKernel& used : step.kernels()) kernels_.insert(used.kernel->hash);
    return std::make_unique<NullExecutable>(std::move(plan));
  }

  Ticket submit(Executable& executable, const Bindings&) override {
    auto& e = static_cast<NullExecutable&>(executable);
    if (e.plan().arena_bytes > 0 && e.arena == nullptr)
      e.arena = allocate(static_cast<std::size_t>(e.plan().arena_bytes));
    dispatches_.fetch_add(e.plan().steps.size(), std::memory_order_relaxed);
    barriers_.fetch_add(static_cast<std::uint64_t>(e.plan().barrier_count()), std::memory_order_relaxed);
    return submits_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  void wait(Ticket) override {}
  void set_memory_limit(std::uint64_t bytes) override { usage_->memory.set_limit(bytes); }

  DeviceCounters counters() const override {
    DeviceCounters c;
    c.dispatches = dispatches_.load(std::memory_order_relaxed);
    c.barriers = barriers_.load(std::memory_order_relaxed);
    c.submits = submits_.load(std::memory_order_relaxed);
    c.queue_submits = c.submits;
    c.downloads = downloads_.load(std::memory_order_relaxed);
    c.allocations = usage_->blocks.load();
    c.live_bytes = usage_->memory.reserved();
    c.peak_bytes = usage_->peak.load();
    count_memory(usage_->memory, c);
    const std::lock_guard lock(mutex_);
    c.kernels_compiled = kernels_.size();
    return c;
  }

 private:
  DeviceInfo info_;
  std::shared_ptr<Usage> usage_ = std::make_shared<Usage>();
  mutable std::mutex mutex_;
  std::unordered_set<Hash128> kernels_;
  std::atomic<std::uint64_t> dispatches_ = 0;
  std::atomic<std::uint64_t> barriers_ = 0;
  std::atomic<std::uint64_t> submits_ = 0;
  std::atomic<std::uint64_t> downloads_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_null_backend() { return std::make_unique<NullBackend>(); }

}  // namespace caldera
