#include "engine/device/cpu/cpu_backend.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "engine/device/backend.h"
#include "engine/device/cpu/attention/attention.h"
#include "engine/device/cpu/host/allocator.h"
#include "engine/device/cpu/host/cpu_info.h"
#include "engine/device/cpu/indexed/gather_scatter.h"
#include "engine/device/cpu/lapack/matrix_step.h"
#include "engine/device/cpu/products/product_step.h"
#include "engine/device/cpu/tiles/region_step.h"
#include "engine/plan/moved_buffers.h"
#include "engine/tensor/error.h"

namespace caldera {
namespace {

using cpu::RunContext;
using PreparedStep = std::variant<cpu::PreparedRegion, cpu::PreparedProduct, cpu::PreparedIndexed,
                                  cpu::PreparedAttention, cpu::PreparedRoutine>;

class CpuExecutable final : public Executable {
 public:
  using Executable::Executable;

  /// Operands of a step lie behind it: about as much again.
  std::size_t bytes() const override {
    return 2 * steps.size() * sizeof(PreparedStep) + buffers.size() * sizeof(std::byte*);
  }

  std::vector<PreparedStep> steps;
  std::vector<std::byte*> buffers;  // of the run in progress: the plan's, then those that are moved
  std::vector<MovedBuffer> moved;
  int barriers = 0;
  int dispatches = 0;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend()
      : info_(cpu::describe_cpu()), reclaimer_(allocator_->memory(), Pressure::heavy, [this] {
          const std::lock_guard lock(arena_mutex_);
          arena_.reset();
        }) {}

  const DeviceInfo& info() const override { return info_; }
  bool supports(DType) const override { return true; }
  StoragePtr allocate(std::size_t bytes) override { return allocator_->allocate(bytes); }

  void upload(Storage& to, std::size_t byte_offset, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to.host_data() + byte_offset, from, bytes);
  }
  void download(Storage& from, std::size_t byte_offset, void* to, std::size_t bytes) override {
    downloads_.fetch_add(1, std::memory_order_relaxed);
    if (bytes > 0) std::memcpy(to, from.host_data() + byte_offset, bytes);
  }

  std::unique_ptr<Executable> prepare(std::shared_ptr<const Plan> plan) override;
  Ticket submit(Executable& executable, const Bindings& bindings) override;
  void set_memory_limit(std::uint64_t bytes) override { allocator_->memory().set_limit(bytes); }
  void wait(Ticket) override {}  // submit returns when the work is done
  DeviceCounters counters() const override;

 private:
  struct Preparation;
  std::shared_ptr<const cpu::RegionProgram> program_of(const std::shared_ptr<const Kernel>& kernel);

  // One for all plans, as large as the largest so far: plans run one after the other, and a program with
  // inputs of many lengths has many plans. `submit` holds it while it runs; under pressure the backend lets
  // go of it.
  StoragePtr arena(std::size_t bytes);
  std::mutex arena_mutex_;
  StoragePtr arena_;
  DeviceInfo info_;
  std::shared_ptr<cpu::Allocator> allocator_ = std::make_shared<cpu::Allocator>();
  std::atomic<std::uint64_t> dispatches_ = 0;
  std::atomic<std::uint64_t> barriers_ = 0;
  std::atomic<std::uint64_t> submits_ = 0;
  std::atomic<std::uint64_t> downloads_ = 0;
  std::atomic<std::uint64_t> kernels_ = 0;
  MemoryBudget::Reclaimer reclaimer_;  // of the arena; last: gone before what it uses
};

StoragePtr CpuBackend::arena(std::size_t bytes) {
  {
    const std::lock_guard lock(arena_mutex_);
    if (arena_ != nullptr && arena_->bytes() >= bytes) return arena_;
    arena_.reset();  // first: the two need not fit side by side
  }
  StoragePtr made = allocator_->allocate(bytes);
  const std::lock_guard lock(arena_mutex_);
  arena_ = made;
  return made;
}

/// The kernel made ready; nullptr for none.
std::shared_ptr<const cpu::RegionProgram> CpuBackend::program_of(
    const std::shared_ptr<const Kernel>& kernel) {
  if (kernel == nullptr) return nullptr;
  std::uint64_t compiled = 0;
  auto program = cpu::decode_cached(*kernel, compiled);
  kernels_.fetch_add(compiled, std::memory_order_relaxed);
  return program;
}

/// Makes a step ready, one function a kind.
struct CpuBackend::Preparation {
  CpuBackend& backend;
  const Plan& plan;
  const Step& step;

  PreparedStep operator()(const RegionStep& region) const {
    return cpu::PreparedRegion(step, region, backend.program_of(region.kernel));
  }
  PreparedStep operator()(const ContractStep& contract) const {
    return cpu::PreparedProduct(plan, step, contract, backend.program_of(contract.epilogue));
  }
  PreparedStep operator()(const GatherStep& gather) const {
    return cpu::PreparedIndexed(step, gather.axis, std::nullopt, index_type());
  }
  PreparedStep operator()(const ScatterStep& scatter) const {
    return cpu::PreparedIndexed(step, scatter.axis, scatter.combine, index_type());
  }
  PreparedStep operator()(const AttentionStep& attention) const {
    for (const auto& kernel : {attention.score, attention.gradient})
      backend.program_of(kernel);  // to count them
    return cpu::PreparedAttention(plan, step, attention);
  }
  PreparedStep operator()(const LinalgStep& linalg) const { return cpu::PreparedRoutine(step, linalg); }

  DType index_type() const { return plan.buffers[static_cast<std::size_t>(step.operands[1].buffer)].dtype; }
};

std::unique_ptr<Executable> CpuBackend::prepare(std::shared_ptr<const Plan> plan) {
  auto executable = std::make_unique<CpuExecutable>(std::move(plan));
  std::optional<Plan> fixed;
  if (!executable->plan().positions.empty())
    fixed.emplace(with_moved_buffers(executable->plan(), executable->moved));
  const Plan& p = fixed ? *fixed : executable->plan();
  executable->steps.reserve(p.steps.size());
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    try {
      executable->steps.push_back(p.steps[i].visit(Preparation{*this, p, p.steps[i]}));
    } catch (const DTypeError& error) {
      throw DTypeError("step " + std::to_string(i) + " (" + p.steps[i].name() + "): " + error.what());
    }
  }
  executable->buffers.resize(p.buffers.size());
  executable->barriers = p.barrier_count();
  executable->dispatches = p.dispatch_count();
  return executable;
}

Ticket CpuBackend::submit(Executable& executable, const Bindings& bindings) {
  auto& e = static_cast<CpuExecutable&>(executable);
  const Plan& plan = e.plan();
  const auto arena_bytes = static_cast<std::size_t>(plan.arena_bytes);
  const StoragePtr held = arena_bytes > 0 ? arena(arena_bytes) : nullptr;
  std::byte* arena = held == nullptr ? nullptr : held->host_data();
  const std::size_t bound = bindings.slots.size();
  const std::size_t planned = plan.buffers.size();
  for (std::size_t i = 0; i < planned; ++i)
    e.buffers[i] = i < bound ? bindings.slots[i].storage->host_data() + bindings.slots[i].byte_offset
                             : arena + plan.buffers[i].arena_offset;
  for (std::size_t i = 0; i < e.moved.size(); ++i) {
    const auto of = static_cast<std::size_t>(e.moved[i].of);
    const Position& position = plan.positions[static_cast<std::size_t>(e.moved[i].position)];
    e.buffers[planned + i] = e.buffers[of] + shift_by(position, bindings.scalars) *
                                                 static_cast<std::int64_t>(size_of(plan.buffers[of].dtype));
  }
  const RunContext context{e.buffers, bindings.scalars};
  for (const PreparedStep& step : e.steps) {
    const StepTimer timer(bindings.step_times);
    std::visit([&](const auto& s) { s.run(context); }, step);
  }
  dispatches_.fetch_add(static_cast<std::uint64_t>(e.dispatches), std::memory_order_relaxed);
  barriers_.fetch_add(static_cast<std::uint64_t>(e.barriers), std::memory_order_relaxed);
  return submits_.fetch_add(1, std::memory_order_relaxed) + 1;
}

DeviceCounters CpuBackend::counters() const {
  const auto memory = allocator_->counters();
  DeviceCounters c;
  c.dispatches = dispatches_.load(std::memory_order_relaxed);
  c.barriers = barriers_.load(std::memory_order_relaxed);
  c.submits = submits_.load(std::memory_order_relaxed);
  c.downloads = downloads_.load(std::memory_order_relaxed);
  c.kernels_compiled = kernels_.load(std::memory_order_relaxed);
  c.allocations = memory.system_blocks;
  c.live_bytes = memory.live_bytes;
  c.peak_bytes = memory.peak_bytes;
  count_memory(allocator_->memory(), c);
  return c;
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace caldera
