#include "engine/device/vulkan/replay/executable.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/replay/commands.h"
#include "engine/device/vulkan/replay/parts.h"
#include "engine/device/vulkan/steps/encode.h"

namespace caldera::vulkan {
namespace {

/// Replays of one plan in flight at once: one runs, one waits, one is being prepared.
constexpr std::size_t kMaxInstances = 3;

/// Patches of one slot are together: a replay skips those of slots that are bound where they were before.
Recording sorted(Recording recording) {
  std::ranges::stable_sort(recording.addresses, {}, &AddressPatch::slot);
  return recording;
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
  bool is_read() const { return marks.stamps.use_count() <= 1; }

  ContextPtr context;
  Piece table;
  std::unique_ptr<Commands> commands;  // null until recorded whole
  std::vector<Part> parts;             // that the commands are
  Marks marks;                         // that the commands take
  std::uint64_t last_use = 0;
  bool has_run_whole = false;          // the last time that it was submitted
  std::vector<VkDeviceAddress> bound;  // that the table holds: a segment each, then a slot each; 0: none yet
  std::vector<bool> spared;            // dispatches that the commands leave out
};

VulkanExecutable::VulkanExecutable(ContextPtr context, std::shared_ptr<const Plan> plan)
    : Executable(std::move(plan)),
      context_(std::move(context)),
      recording_(sorted(encode(this->plan(), *context_))),
      schedule_(this->plan(), recording_, context_->pace) {
  if (recording_.counters > 0) context_->counters.reserve();
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
  return recording + schedule_.bytes() + kMaxInstances * instance;
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
  if (oldest.spared != spared) {
    learn(oldest);
    oldest.commands.reset();  // to be recorded again
  }
  return oldest;
}

VulkanExecutable::Instance& VulkanExecutable::measured_instance() {
  const std::uint64_t done = context_->device->completed();
  for (const auto& instance : measured_) {
    if (instance->last_use <= done && instance->is_read()) return *instance;
  }
  auto made = std::make_unique<Instance>(context_, recording_);
  const auto stamps = static_cast<std::uint32_t>(recording_.dispatches.size() + 1);
  made->marks = {std::make_shared<Stamps>(context_->device, stamps), true};
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

void VulkanExecutable::bind(Instance& instance, const Bindings& bindings, const Arena& arena) const {
  instance.bound.resize(arena.size() + bindings.slots.size());
  std::byte* const table = instance.table.mapped;
  const auto known_of = [&](std::int32_t slot) -> VkDeviceAddress& {
    return instance.bound[AddressPatch::is_arena(slot) ? AddressPatch::segment_of(slot)
                                                       : arena.size() + static_cast<std::size_t>(slot)];
  };
  const auto base_of = [&](std::int32_t slot) -> VkDeviceAddress {
    if (AddressPatch::is_arena(slot)) return arena[AddressPatch::segment_of(slot)]->address();
    const Bindings::Slot& bound = bindings.slots[static_cast<std::size_t>(slot)];
    return static_cast<const VulkanStorage*>(bound.storage)->address() +
           static_cast<std::uint64_t>(bound.byte_offset);
  };
  for (std::size_t i = 0; i < recording_.addresses.size();) {
    const std::int32_t slot = recording_.addresses[i].slot;
    const VkDeviceAddress base = base_of(slot);
    VkDeviceAddress& known = known_of(slot);
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

void VulkanExecutable::learn(Instance& instance) {
  if (!instance.is_recorded()) return;
  const Marks& marks = instance.marks;
  if (marks.stamps != nullptr && !marks.each_dispatch && instance.has_run_whole) {
    if (const auto ticks = marks.stamps->read_if_ready()) {
      std::vector<double> took;
      for (std::size_t p = 0; p < instance.parts.size(); ++p) {
        const auto time = elapsed(context_->device->physical(), (*ticks)[2 * p], (*ticks)[2 * p + 1]);
        took.push_back(std::chrono::duration<double>(time).count());
      }
      schedule_.learn(instance.parts, took, instance.spared);
    }
  }
  if (schedule_.is_stale(instance.parts)) instance.commands.reset();
}

/// Submits parts of the instance that are recorded.
void VulkanExecutable::queue(Instance& instance, std::size_t first_part, std::size_t parts) {
  LogicalDevice& device = *context_->device;
  instance.last_use = device.submit(std::span(instance.commands->buffers()).subspan(first_part, parts));
  const Part& last = instance.parts[first_part + parts - 1];
  const std::size_t done = last.ends_dispatch() ? last.last : last.first;  // dispatches
  std::size_t steps = plan().steps.size();
  if (done < recording_.dispatches.size()) {
    const auto is_done = [&](const DispatchRange& range) { return range.first + range.count <= done; };
    steps = static_cast<std::size_t>(std::ranges::partition_point(recording_.steps, is_done) -
                                     recording_.steps.begin());
  }
  if (steps > 0) device.flights().submitted(instance.last_use, steps - 1);
}

/// In a first run also submits each part as soon as it is recorded.
void VulkanExecutable::record(Instance& instance) {
  instance.parts = schedule_.parts(!has_run_ && !instance.marks.each_dispatch);
  if (!instance.marks.each_dispatch) {
    instance.marks.stamps.reset();
    if (schedule_.is_timed() && has_timestamps(context_->device->physical()))
      instance.marks.stamps =
          std::make_shared<Stamps>(context_->device, static_cast<std::uint32_t>(2 * instance.parts.size()));
  }
  instance.commands = std::make_unique<Commands>(context_, instance.table.address);
  for (std::size_t p = 0; p < instance.parts.size(); ++p) {
    instance.commands->record(recording_, instance.parts[p], instance.marks, instance.spared);
    if (!has_run_) queue(instance, p, 1);
  }
}

/// Submits the instance, recorded or not; the last ticket in it. Where it throws, nothing of it runs any
/// more.
std::uint64_t VulkanExecutable::submit(Instance& instance) {
  const bool was_recorded = instance.is_recorded();
  instance.has_run_whole = false;
  try {
    if (!was_recorded) record(instance);
    if (was_recorded || has_run_) {
      std::size_t first = 0;
      for (const std::size_t parts : schedule_.submits(instance.parts)) {
        queue(instance, first, parts);
        first += parts;
      }
    }
  } catch (...) {
    context_->device->settle(instance.last_use);  // what has been queued runs to its end
    if (recording_.counters > 0 && !context_->device->is_lost()) {
      context_->device->settle(context_->device->submitted());  // other replays count, too
      context_->counters.clear();
    }
    if (!was_recorded) instance.commands.reset();
    throw;
  }
  instance.has_run_whole = true;
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
  learn(instance);
  instance.spared = std::move(spared);
  const Arena arena = context_->arena(p.arena_segments());
  bind(instance, bindings, arena);

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
  for (const auto& segment : arena) segment->used_until(ticket);
  for (const Bindings::Slot& slot : bindings.slots)
    static_cast<VulkanStorage*>(slot.storage)->used_until(ticket);
  if (measured)
    context_->measurements.add(ticket, instance.marks.stamps, recording_.steps, bindings.step_times);
  return ticket;
}

}  // namespace caldera::vulkan
