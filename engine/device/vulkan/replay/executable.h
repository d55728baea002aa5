// A plan recorded for the Vulkan device, replayed by rewriting its argument table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/vulkan/record/recording.h"
#include "engine/device/vulkan/replay/schedule.h"
#include "engine/device/vulkan/steps/context.h"

namespace caldera::vulkan {

/// Holds instances: command buffers with a table each, recorded once. While one is in flight the next replay
/// takes another, so the host prepares step n + 1 while the device runs step n. The first replay is recorded
/// and submitted in parts (parts.h); every other one is a single submit, unless it takes so long that a
/// watchdog might end it: then its parts are packed into several (schedule.h). Replays that are measured
/// (Bindings::step_times) use instances of their own, with a time after each dispatch.
class VulkanExecutable final : public Executable {
 public:
  /// Makes the pipelines and the argument table.
  VulkanExecutable(ContextPtr context, std::shared_ptr<const Plan> plan);
  ~VulkanExecutable() override;

  /// Binds and queues one replay; returns its position on the timeline. One thread at a time. Throws
  /// PlanError where the bindings do not fit the plan, DeviceError otherwise: part of the work may have run
  /// then, and none of it runs any more.
  std::uint64_t replay(const Bindings& bindings);
  const Recording& recording() const { return recording_; }
  /// Command buffers of whole plans recorded so far.
  std::size_t instances() const { return instances_.size(); }
  StepVariant variant_of(std::size_t step) const override;
  /// Counts the bytes as if it had all the instances that it may come to have.
  std::size_t bytes() const override;

 private:
  struct Instance;
  using Instances = std::vector<std::unique_ptr<Instance>>;

  std::vector<bool> spared_by(const Bindings& bindings) const;
  /// One whose last replay is done, which leaves out these dispatches or has nothing recorded yet.
  Instance& free_instance(const std::vector<bool>& spared);
  /// One that measures, none of whose times are yet to be read.
  Instance& measured_instance();
  void check_bindings(const Bindings& bindings) const;
  void bind(Instance& instance, const Bindings& bindings, const Arena& arena) const;
  /// Takes what the instance's last replay took into account. Forgets its commands if they ought to be cut
  /// otherwise.
  void learn(Instance& instance);
  std::uint64_t submit(Instance& instance);
  void record(Instance& instance);
  void queue(Instance& instance, std::size_t first_part, std::size_t parts);

  ContextPtr context_;
  Recording recording_;
  Schedule schedule_;
  bool has_run_ = false;
  Instances instances_;
  Instances measured_;  // made when somebody measures
};

}  // namespace caldera::vulkan
