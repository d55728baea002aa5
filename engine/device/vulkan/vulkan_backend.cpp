#include "engine/device/vulkan/vulkan_backend.h"

#include <fmt/core.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/attention/attention_families.h"
#include "engine/device/vulkan/memory/transfer.h"
#include "engine/device/vulkan/open/instance.h"
#include "engine/device/vulkan/open/physical_device.h"
#include "engine/device/vulkan/replay/executable.h"
#include "engine/device/vulkan/steps/context.h"
#include "engine/device/vulkan/steps/step_code.h"
#include "engine/device/vulkan/survey/survey.h"
#include "engine/survey/surveyor.h"

namespace caldera {
namespace {

using vulkan::Context;
using vulkan::ContextPtr;
using vulkan::DeviceUse;
using vulkan::MemoryCounters;
using vulkan::physical_devices;
using vulkan::PhysicalDevice;
using vulkan::Piece;
using vulkan::Transfer;
using vulkan::VulkanExecutable;
using vulkan::VulkanStorage;

class VulkanBackend : public Backend {
 public:
  explicit VulkanBackend(const PhysicalDevice& physical, DeviceUse use = DeviceUse::computing)
      : context_(std::make_shared<Context>(physical, use)), transfer_(context_->device) {}
  // Frees nothing under the feet of work in flight.
  ~VulkanBackend() override { context_->device->settle(context_->device->submitted()); }

  const DeviceInfo& info() const override { return context_->device->physical().info; }
  bool supports(DType type) const override { return context_->supports(type); }

  DeviceTraits traits() const override { return {.compute_units = context_->compute_units}; }

  std::vector<ProductVariantInfo> product_variants() const override {
    std::vector<ProductVariantInfo> variants;
    for (const vulkan::ProductVariant& v : vulkan::product_variants())
      variants.push_back({v.name, why_not(v, typical_product(v), context_->device->capabilities())});
    return variants;
  }

  std::vector<AttentionVariantInfo> attention_variants() const override {
    std::vector<AttentionVariantInfo> variants;
    for (const vulkan::AttentionFamily* family : vulkan::attention_families())
      variants.push_back({std::string(family->name()), family->why_not(context_->device->capabilities()),
                          family->rounds_weights()});
    return variants;
  }

  bool runs_ahead() const override { return true; }

  StoragePtr allocate(std::size_t bytes) override {
    context_->device->check_alive();
    return std::make_shared<VulkanStorage>(context_->tensors, bytes);
  }

  void upload(Storage& to, std::size_t byte_offset, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    const Piece& piece = checked(to, byte_offset, bytes, "upload");
    if (piece.mapped != nullptr)
      std::memcpy(piece.mapped + byte_offset, from, bytes);
    else
      transfer_.upload(piece, byte_offset, from, bytes);
  }

  void download(Storage& from, std::size_t byte_offset, void* to, std::size_t bytes) override {
    downloads_.fetch_add(1, std::memory_order_relaxed);
    if (bytes == 0) return;
    const Piece& piece = checked(from, byte_offset, bytes, "download");
    if (piece.readable)
      std::memcpy(to, piece.mapped + byte_offset, bytes);
    else
      transfer_.download(piece, byte_offset, to, bytes);
  }

  std::unique_ptr<Executable> prepare(std::shared_ptr<const Plan> plan) override {
    context_->device->check_alive();
    return std::make_unique<VulkanExecutable>(context_, std::move(plan));
  }

  Ticket submit(Executable& executable, const Bindings& bindings) override {
    auto& mine = static_cast<VulkanExecutable&>(executable);
    const Ticket ticket = mine.replay(bindings);
    context_->count_replay();
    submits_.fetch_add(1, std::memory_order_relaxed);
    dispatches_.fetch_add(mine.recording().dispatches.size(), std::memory_order_relaxed);
    barriers_.fetch_add(mine.recording().barriers, std::memory_order_relaxed);
    return ticket;
  }

  void wait(Ticket ticket) override {
    try {
      context_->device->wait(ticket);
    } catch (...) {
      context_->measurements.forget(ticket);
      throw;
    }
    context_->measurements.collect(ticket);
  }

  void set_memory_limit(std::uint64_t bytes) override { context_->device->memory().set_limit(bytes); }

  void trim() override {
    context_->device->check_alive();
    transfer_.trim();
    context_->device->memory().relieve(Pressure::heavy);
  }

  CodeWriter code_writer() const override { return vulkan::code_of_step; }
  DeviceCounters counters() const override {
    const MemoryCounters memory = context_->tensors->counters();
    DeviceCounters c;
    c.dispatches = dispatches_.load(std::memory_order_relaxed);
    c.barriers = barriers_.load(std::memory_order_relaxed);
    c.submits = submits_.load(std::memory_order_relaxed);
    c.queue_submits = context_->device->submits();
    c.downloads = downloads_.load(std::memory_order_relaxed);
    c.allocations = memory.allocations;
    c.live_bytes = memory.live_bytes;
    c.peak_bytes = memory.peak_bytes;
    count_memory(context_->device->memory(), c);
    c.kernels_compiled = context_->pipelines.compiled();
    return c;
  }

  CacheStats cache_stats(CacheKind kind) const override {
    if (kind == CacheKind::pipelines) return context_->pipelines.stats();
    return kind == CacheKind::files ? context_->pipelines.disk().folder().stats() : CacheStats{};
  }
  void set_cache_limit(CacheKind kind, std::uint64_t bytes) override {
    if (kind == CacheKind::pipelines) context_->pipelines.set_limit(bytes);
    if (kind == CacheKind::files) context_->pipelines.disk().folder().set_limit(bytes);
  }
  void save_caches() noexcept override { context_->pipelines.save(); }

 protected:
  Context& context() { return *context_; }

 private:
  const Piece& checked(Storage& storage, std::size_t offset, std::size_t bytes, const char* what) const {
    if (storage.device() != info().device || offset > storage.bytes() || bytes > storage.bytes() - offset)
      throw DeviceError(fmt::format("{}: {} of {} bytes at {} of a block of {} bytes on {}",
                                    info().device.to_string(), what, bytes, offset, storage.bytes(),
                                    storage.device().to_string()));
    const auto& mine = static_cast<VulkanStorage&>(storage);
    context_->device->check_alive();
    mine.check_owner(*context_->device);
    return mine.piece();
  }

  ContextPtr context_;
  Transfer transfer_;
  std::atomic<std::uint64_t> dispatches_{0}, barriers_{0}, submits_{0}, downloads_{0};
};

/// Everything but computing: see Surveyor.
class VulkanSurveyor final : public VulkanBackend, public Surveyor {
 public:
  explicit VulkanSurveyor(const PhysicalDevice& physical) : VulkanBackend(physical, DeviceUse::survey) {}

  StoragePtr allocate(std::size_t bytes) override { return std::make_shared<Storage>(info().device, bytes); }
  void upload(Storage&, std::size_t, const void*, std::size_t) override {}
  void download(Storage&, std::size_t, void* to, std::size_t bytes) override {
    if (bytes > 0) std::memset(to, 0, bytes);
  }
  std::unique_ptr<Executable> prepare(std::shared_ptr<const Plan> plan) override {
    return std::make_unique<Unprepared>(std::move(plan));
  }
  Ticket submit(Executable&, const Bindings&) override { return ++tickets_; }
  void wait(Ticket) override {}

  std::vector<KernelReport> survey(std::span<const std::shared_ptr<const Plan>> plans) override {
    return vulkan::survey(plans, context());
  }

 private:
  class Unprepared final : public Executable {
   public:
    using Executable::Executable;
  };

  std::atomic<Ticket> tickets_{0};
};

/// Runs a kernel on a device of its own, once in a process: see Capabilities::compile_early.
void compile_once(const PhysicalDevice& physical) {
  static std::once_flag done;
  std::call_once(done, [&] {
    auto fill = std::make_shared<Kernel>();
    fill->name = "first";
    fill->scalars = {DType::f32};
    fill->code = {{ScalarOp::scalar, DType::f32, 0}};
    fill->outputs = {{0, DType::f32}};
    fill->finish();
    Step step;
    step.work = RegionStep{.kernel = std::move(fill)};
    step.operands = {{.buffer = 0, .offset = 0, .strides = {}}};
    step.scalars = {0};
    auto plan = std::make_shared<Plan>();
    plan->device = physical.info.device;
    plan->buffers = {{BufferRole::output, DType::f32, 4, 0}};
    plan->output_count = 1;
    plan->scalars = {DType::f32};
    plan->steps = {std::move(step)};
    VulkanBackend backend(physical);
    const StoragePtr output = backend.allocate(4);
    backend.wait(backend.submit(*backend.prepare(std::move(plan)), {{{output.get(), 0}}, {0}}));
  });
}

/// Throws DeviceError that says what there is when the index does not exist.
const PhysicalDevice& listed_device(int index) {
  const std::vector<PhysicalDevice>& devices = physical_devices();
  if (index < 0 || index >= static_cast<int>(devices.size())) {
    if (devices.empty())
      throw DeviceError(
          fmt::format("vulkan:{}: no Vulkan 1.2 device here (is a driver installed? packages libvulkan1 and "
                      "mesa-vulkan-drivers)",
                      index));
    std::string present;
    for (const PhysicalDevice& device : devices)
      present += fmt::format("{}{} ({})", present.empty() ? "" : ", ", device.info.device.to_string(),
                             device.info.name);
    throw DeviceError(fmt::format("vulkan:{}: no such device; there is {}", index, present));
  }
  return devices[static_cast<std::size_t>(index)];
}

}  // namespace

std::vector<DeviceInfo> list_vulkan_devices() {
  std::vector<DeviceInfo> infos;
  for (const PhysicalDevice& device : physical_devices()) infos.push_back(device.info);
  return infos;
}

std::unique_ptr<Backend> make_vulkan_backend(int index) {
  const PhysicalDevice& device = listed_device(index);
  if (device.capabilities.compile_early) compile_once(device);
  return std::make_unique<VulkanBackend>(device);
}

std::unique_ptr<Backend> make_vulkan_surveyor(int index) {
  return std::make_unique<VulkanSurveyor>(listed_device(index));
}

std::uint64_t vulkan_validation_messages() { return vulkan::validation_messages(); }

}  // namespace caldera
