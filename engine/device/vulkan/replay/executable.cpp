#include "engine/device/vulkan/replay/executable.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "engine/device/backend.h"
#include "engine/device/vulkan/replay/commands.h"
#include "engine/device/vulkan/replay/parts.h"
#include "engine/device/vulkan/steps/encode.h"
#include "engine/tensor/error.h"

namespace caldera::vulkan {
namespace {

/// Replays of one plan in flight at once: one runs, one waits, one is being prepared.
constexpr std::size_t kMaxInstances = 3;

/// Patches of one slot lie together: a replay skips those of slots that are bound where they were before.
void sort_patches(Recording& recording) {
  std::ranges::stable_sort(recording.addresses, {}, &AddressPatch::slot);
}

}  // namespace

struct VulkanExecutable::Instance {
  Instance(const ContextPtr& c, const Recording& recording)
      : context(c), table(c->tables->allocate(recording.table.size())) {
    std::memcpy(table.mapped, recording.table.data(), recording.table.size());
  }
  ~Instance() {
    context->device->settle(last_use);  // the commands may still run
    context->tables->release(table, last_use);
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  bool is_recorded() const { return commands != nullptr; }
  /// Nobody has yet to read the times of its last replay.
  bool is_read() const { return stamps.use_count() <= 1; }

  ContextPtr context;
  Piece table;
  std::unique_ptr<Commands> commands;  // null until recorded whole
  std::shared_ptr<Stamps> stamps;      // null: does not measure
  std::uint64_t last_use = 0;
  std::vector<VkDeviceAddress> bound;  // that the table holds: the arena's, then a slot each; 0: none yet
  std::vector<bool> spared;            // dispatches that the commands leave out
};

VulkanExecutable::VulkanExecutable(ContextPtr context, std::shared_ptr<const Plan> plan)
    : Executable(std::move(plan)), context_(std::move(context)), recording_(encode(this->plan(), *context_)) {
  sort_patches(recording_);
}

VulkanExecutable::~VulkanExecutable() = default;

StepVariant VulkanExecutable::variant_of(std::size_t step) const {
  const auto found = std::ranges::find(recording_.variants, step, &ChosenVariant::step);
  return found != recording_.variants.end() ? found->variant : StepVariant{};
}

std::size_t VulkanExecutable::bytes() const {
  constexpr std::size_t kPool = std::size_t{32} << 10;  // that a driver takes for the commands of any plan
  constexpr std::size_t kCommand = 256;                 // for a dispatch: bind, push, dispatch, barrier
  const std::size_t recording =
      recording_.table.size() + recording_.dispatches.size() * sizeof(Dispatch) +
      recording_.addresses.size() * sizeof(AddressPatch) + recording_.moved.size() * sizeof(MovedPatch) +
      recording_.scalars.size() * sizeof(ScalarPatch) + recording_.variants.size() * sizeof(ChosenVariant);
  const std::size_t instance = kPool + recording_.table.size() + recording_.dispatches.size() * kCommand;
  return recording + kMaxInstances * instance;
}

/// Copies whose operands and results are bound to the same memory.
std::vector<bool> VulkanExecutable::spared_by(const Bindings& bindings) const {
  std::vector<bool> spared;
  const auto lies_there = [&](const std::pair<std::int32_t, std::int32_t>& copy) {
    const Bindings::Slot& from = bindings.slots[static_cast<std::size_t>(copy.first)];
    const Bindings::Slot& to = bindings.slots[static_cast<std::size_t>(copy.second)];
    return from.storage == to.storage && from.byte_offset == to.byte_offset;
  };
  for (const CopyDispatch& copy : recording_.copies) {
    if (!std::ranges::all_of(copy.slots, lies_there)) continue;
    if (spared.empty()) spared.resize(recording_.dispatches.size(), false);
    spared[copy.dispatch] = true;
  }
  return spared;
}

VulkanExecutable::Instance& VulkanExecutable::free_instance(const std::vector<bool>& spared) {
  const std::uint64_t done = context_->device->completed();
  for (const auto& instance : instances_) {
    if (instance->last_use <= done && instance->spared == spared) return *instance;
  }
  if (instances_.size() < kMaxInstances) {
    instances_.push_back(std::make_unique<Instance>(context_, recording_));
    return *instances_.back();
  }
  Instance& oldest = **std::ranges::min_element(instances_, {}, [](const auto& i) { return i->last_use; });
  context_->device->wait(oldest.last_use);
  if (oldest.spared != spared) oldest.commands.reset();  // to be recorded anew
  return oldest;
}

VulkanExecutable::Instance& VulkanExecutable::measured_instance() {
  const std::uint64_t done = context_->device->completed();
  for (const auto& instance : measured_) {
    if (instance->last_use <= done && instance->is_read()) return *instance;
  }
  auto made = std::make_unique<Instance>(context_, recording_);
  const auto stamps = static_cast<std::uint32_t>(recording_.dispatches.size() + 1);
  made->stamps = std::make_shared<Stamps>(context_->device, stamps);
  measured_.push_back(std::move(made));
  return *measured_.back();
}

void VulkanExecutable::check_bindings(const Bindings& bindings) const {
  const Plan& p = plan();
  const LogicalDevice& device = *context_->device;
  const auto slots = static_cast<std::size_t>(p.input_count) + static_cast<std::size_t>(p.output_count);
  if (bindings.slots.size() != slots || bindings.scalars.size() != p.scalars.size())
    throw PlanError(fmt::format("{}: {} slots and {} scalars bound to a plan of {} and {}", device.name(),
                                bindings.slots.size(), bindings.scalars.size(), slots, p.scalars.size()));
  for (std::size_t i = 0; i < slots; ++i) {
    const Storage* storage = bindings.slots[i].storage;
    if (storage == nullptr)
      throw PlanError(fmt::format("{}: nothing is bound to slot {} of a plan", device.name(), i));
    static_cast<const VulkanStorage*>(storage)->check_owner(device);
  }
}

void VulkanExecutable::bind(Instance& instance, const Bindings& bindings, std::uint64_t arena) const {
  instance.bound.resize(bindings.slots.size() + 1);
  std::byte* const table = instance.table.mapped;
  const auto base_of = [&](std::int32_t slot) -> VkDeviceAddress {
    if (slot == AddressPatch::kArena) return arena;
    const Bindings::Slot& bound = bindings.slots[static_cast<std::size_t>(slot)];
    return static_cast<const VulkanStorage*>(bound.storage)->address() +
           static_cast<std::uint64_t>(bound.byte_offset);
  };
  for (std::size_t i = 0; i < recording_.addresses.size();) {
    const std::int32_t slot = recording_.addresses[i].slot;
    const VkDeviceAddress base = base_of(slot);
    VkDeviceAddress& known = instance.bound[static_cast<std::size_t>(slot) + 1];
    const bool is_new = known != base;
    known = base;
    for (; i < recording_.addresses.size() && recording_.addresses[i].slot == slot; ++i) {
      if (!is_new) continue;
      const VkDeviceAddress address = base + static_cast<std::uint64_t>(recording_.addresses[i].offset);
      std::memcpy(table + recording_.addresses[i].at, &address, sizeof address);
    }
  }
  for (const MovedPatch& patch : recording_.moved) {
    const Position& position = plan().positions[static_cast<std::size_t>(patch.position)];
    const std::int64_t offset = patch.address.offset + shift_by(position, bindings.scalars) * patch.element;
    const VkDeviceAddress address = base_of(patch.address.slot) + static_cast<std::uint64_t>(offset);
    std::memcpy(table + patch.address.at, &address, sizeof address);
  }
  for (const ScalarPatch& patch : recording_.scalars)
    std::memcpy(table + patch.at, &bindings.scalars[static_cast<std::size_t>(patch.scalar)], 8);
}

/// Submits the instance, recorded or not. Notes the last ticket in it even where it throws.
std::uint64_t VulkanExecutable::submit(Instance& instance) {
  LogicalDevice& device = *context_->device;
  const std::size_t last_step = plan().steps.size() - 1;
  const auto queue = [&](std::span<const VkCommandBuffer> commands, std::size_t step) {
    instance.last_use = device.submit(commands);
    device.flights().submitted(instance.last_use, step);
  };
  if (instance.is_recorded()) {
    queue(instance.commands->buffers(), last_step);
    return instance.last_use;
  }
  auto commands = std::make_unique<Commands>(context_, instance.table.address);
  const std::size_t count = recording_.dispatches.size();
  if (has_run_ || instance.stamps != nullptr) {
    commands->record(recording_, 0, count, instance.stamps.get(), instance.spared);
    queue(commands->buffers(), last_step);
  } else {
    std::size_t first = 0, step = 0;
    try {
      for (const std::size_t end : first_run_parts(plan(), recording_)) {
        const VkCommandBuffer part = commands->record(recording_, first, end, nullptr, instance.spared);
        while (step < last_step && recording_.steps[step + 1].first < end) ++step;
        queue({&part, 1}, end == count ? last_step : step);
        first = end;
      }
    } catch (...) {
      device.settle(instance.last_use);  // what has been queued runs to its end before its commands go
      throw;
    }
  }
  instance.commands = std::move(commands);
  return instance.last_use;
}

std::uint64_t VulkanExecutable::replay(const Bindings& bindings) {
  const Plan& p = plan();
  LogicalDevice& device = *context_->device;
  device.check_alive();
  check_bindings(bindings);
  const bool measured = bindings.step_times != nullptr && has_timestamps(device.physical());
  if (recording_.dispatches.empty()) {
    const auto now = std::chrono::steady_clock::now();
    if (measured) bindings.step_times->assign(p.steps.size(), {now, now});
    return device.submitted();
  }

  std::vector<bool> spared = measured ? std::vector<bool>() : spared_by(bindings);
  Instance& instance = measured ? measured_instance() : free_instance(spared);
  instance.spared = std::move(spared);
  const std::shared_ptr<VulkanStorage> arena =
      p.arena_bytes > 0 ? context_->arena(static_cast<std::uint64_t>(p.arena_bytes)) : nullptr;
  bind(instance, bindings, arena != nullptr ? arena->address() : 0);

  device.flights().begin(plan_ptr(), device.last_completed());
  std::uint64_t ticket = 0;
  try {
    ticket = submit(instance);
  } catch (...) {
    if (!device.is_lost()) device.flights().cancel();
    throw;
  }
  device.flights().end();
  has_run_ = true;
  if (arena != nullptr) arena->used_until(ticket);
  for (const Bindings::Slot& slot : bindings.slots)
    static_cast<VulkanStorage*>(slot.storage)->used_until(ticket);
  if (measured) context_->measurements.add(ticket, instance.stamps, recording_.steps, bindings.step_times);
  return ticket;
}

}  // namespace caldera::vulkan
