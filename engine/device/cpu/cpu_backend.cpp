#include "engine/device/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/cpu/attention/attention.h"
#include "engine/device/cpu/convolution/convolution_step.h"
#include "engine/device/cpu/host/allocator.h"
#include "engine/device/cpu/host/arenas.h"
#include "engine/device/cpu/host/cpu_info.h"
#include "engine/device/cpu/indexed/gather_scatter.h"
#include "engine/device/cpu/lapack/matrix_step.h"
#include "engine/device/cpu/products/product_step.h"
#include "engine/device/cpu/quantized/quantized_step.h"
#include "engine/device/cpu/regions/region_chain.h"
#include "engine/device/cpu/regions/region_step.h"
#include "engine/device/cpu/sort/sort_step.h"
#include "engine/plan/moved_buffers.h"

namespace caldera {
namespace {

using cpu::RunContext;
using PreparedStep =
    std::variant<cpu::PreparedRegion, cpu::PreparedProduct, cpu::PreparedIndexed, cpu::PreparedAttention,
                 cpu::PreparedRoutine, cpu::PreparedQuantized, cpu::PreparedConvolution, cpu::PreparedSort>;

/// Of buffers: a huge plan's list is not worth keeping.
constexpr std::size_t kWorthKeeping = std::size_t{1} << 16;
constexpr std::uint64_t kAge = 64;

class CpuExecutable final : public Executable {
 public:
  using Executable::Executable;

  /// Operands of a step are behind it: about as much again.
  std::size_t bytes() const override { return 2 * steps.size() * sizeof(PreparedStep); }

  std::vector<PreparedStep> steps;
  struct Chain {
    std::size_t first;  // of its steps
    cpu::RegionChain regions;
  };
  std::vector<Chain> chains;  // by their first steps
  std::vector<MovedBuffer> moved;
  int barriers = 0;
  int dispatches = 0;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend() : info_(cpu::describe_cpu()) {}

  const DeviceInfo& info() const override { return info_; }
  bool supports(DType) const override { return true; }
  DeviceTraits traits() const override {
    return {.barriers_cost = false, .reads_stored_keys = true, .joins_attention_gradients = true};
  }
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
  void trim() override {
    allocator_->memory().relieve(Pressure::heavy);
    cpu::trim_heap();
  }
  void wait(Ticket) override {}  // submit returns when the work is done
  /// More than there are cores: a thread that must wait for one is better off waiting in its own job than
  /// handing that to another thread.
  std::size_t lanes() const override { return lanes_; }
  DeviceCounters counters() const override;
  CacheStats cache_stats(CacheKind kind) const override {
    return kind == CacheKind::kernels ? cpu::decoded_stats() : CacheStats{};
  }
  void set_cache_limit(CacheKind kind, std::uint64_t bytes) override {
    if (kind == CacheKind::kernels) cpu::set_decoded_limit(bytes);
  }

 private:
  struct Preparation;
  std::shared_ptr<const cpu::RegionProgram> program_of(const std::shared_ptr<const Kernel>& kernel);

  static void find_chains(CpuExecutable& e);
  static bool run_chain(const CpuExecutable::Chain& chain, const RunContext& context,
                        std::vector<StepTime>* times);
  void run(const CpuExecutable& e, const Bindings& bindings);
  void age(std::uint64_t submits);

  DeviceInfo info_;
  std::shared_ptr<cpu::Allocator> allocator_ = std::make_shared<cpu::Allocator>();
  std::atomic<std::uint64_t> dispatches_ = 0;
  std::atomic<std::uint64_t> barriers_ = 0;
  std::atomic<std::uint64_t> submits_ = 0;
  std::atomic<std::uint64_t> downloads_ = 0;
  std::atomic<std::uint64_t> kernels_ = 0;
  const std::size_t lanes_ = std::max(16U, 2 * std::thread::hardware_concurrency());
  cpu::Arenas arenas_{*allocator_};
};

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
  PreparedStep operator()(const QuantizedStep& quantized) const {
    return cpu::PreparedQuantized(plan, step, quantized);
  }
  PreparedStep operator()(const ConvolutionStep& convolution) const {
    return cpu::PreparedConvolution(step, convolution);
  }
  PreparedStep operator()(const SortStep& sort) const { return cpu::PreparedSort(step, sort); }

  PreparedStep operator()(const ControlStep&) const {
    throw PlanError("a step that runs plans is not prepared by a device (engine/device/control)");
  }

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
  executable->barriers = p.barrier_count();
  executable->dispatches = p.dispatch_count();
  if (!fixed) find_chains(*executable);  // of a moved buffer nobody knows where it lies in another
  return executable;
}

void CpuBackend::find_chains(CpuExecutable& e) {
  for (std::size_t i = 0; i < e.steps.size();) {
    std::vector<const cpu::PreparedRegion*> regions;
    for (std::size_t s = i; s < e.steps.size() && regions.size() < cpu::RegionChain::kMostSteps; ++s) {
      const auto* const region = std::get_if<cpu::PreparedRegion>(&e.steps[s]);
      if (region == nullptr || region->piece() == 0) break;
      regions.push_back(region);
    }
    cpu::RegionChain chain(regions);
    const std::size_t count = std::max<std::size_t>(1, chain.count());
    if (count > 1) e.chains.push_back({i, std::move(chain)});
    i += count;
  }
}

/// Whether it ran. Of the time that a chain takes each step gets its share.
bool CpuBackend::run_chain(const CpuExecutable::Chain& chain, const RunContext& context,
                           std::vector<StepTime>* times) {
  const auto begin = std::chrono::steady_clock::now();
  if (!chain.regions.run(context)) return false;
  if (times == nullptr) return true;
  const auto took = std::chrono::steady_clock::now() - begin;
  auto at = begin;
  for (std::size_t s = 0; s < chain.regions.count(); ++s) {
    const auto next =
        at + std::chrono::duration_cast<std::chrono::steady_clock::duration>(took * chain.regions.share(s));
    times->push_back({at, next});
    at = next;
  }
  return true;
}

void CpuBackend::run(const CpuExecutable& e, const Bindings& bindings) {
  const Plan& plan = e.plan();
  const cpu::Arenas::Lease arena =
      arenas_.take(static_cast<std::size_t>(plan.arena_bytes), submits_.load(std::memory_order_relaxed));
  std::byte* const base = arena.data();
  // One list a thread: the same plan may run in several at once.
  thread_local std::vector<std::byte*> buffers;
  buffers.resize(plan.buffers.size() + e.moved.size());
  const std::size_t bound = bindings.slots.size();
  for (std::size_t i = 0; i < plan.buffers.size(); ++i)
    buffers[i] = i < bound ? bindings.slots[i].storage->host_data() + bindings.slots[i].byte_offset
                           : base + plan.buffers[i].arena_offset;
  for (std::size_t i = 0; i < e.moved.size(); ++i) {
    const auto of = static_cast<std::size_t>(e.moved[i].of);
    const Position& position = plan.positions[static_cast<std::size_t>(e.moved[i].position)];
    buffers[plan.buffers.size() + i] =
        buffers[of] +
        shift_by(position, bindings.scalars) * static_cast<std::int64_t>(size_of(plan.buffers[of].dtype));
  }
  const RunContext context{buffers, bindings.scalars};
  FailedSteps failed;
  auto chain = e.chains.begin();
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    if (chain != e.chains.end() && chain->first == i) {
      const auto& at = *chain++;
      if (run_chain(at, context, bindings.step_times)) {
        i += at.regions.count() - 1;
        continue;
      }
    }
    const StepTimer timer(bindings.step_times);
    try {
      std::visit([&](const auto& s) { s.run(context); }, e.steps[i]);
    } catch (const ValueError&) {  // a routine does not accept its matrix; the others go on
      failed.steps.push_back(i);
      if (!failed.error) failed.error = std::current_exception();
    }
  }
  if (buffers.capacity() > kWorthKeeping) buffers = {};
  if (failed.error) throw FailedSteps{failed.error, failed.steps};
}

Ticket CpuBackend::submit(Executable& executable, const Bindings& bindings) {
  const auto& e = static_cast<CpuExecutable&>(executable);
  run(e, bindings);
  dispatches_.fetch_add(static_cast<std::uint64_t>(e.dispatches), std::memory_order_relaxed);
  barriers_.fetch_add(static_cast<std::uint64_t>(e.barriers), std::memory_order_relaxed);
  const std::uint64_t submits = submits_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (submits % kAge == 0) age(submits);
  return submits;
}

/// Every kAge replays: what none of them needed goes back to the system.
void CpuBackend::age(std::uint64_t submits) {
  arenas_.age(submits - kAge);
  allocator_->age();
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
