// A plan recorded for the Vulkan device, replayed by rewriting its argument table.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/vulkan/context.h"
#include "engine/device/vulkan/recording.h"

namespace caldera::vulkan {

/// Holds instances: command buffers with a table each, recorded once. While one is in flight the next replay
/// takes another, so the host prepares step n + 1 while the device runs step n.
class VulkanExecutable final : public Executable {
 public:
  /// Makes the pipelines and records the first instance.
  VulkanExecutable(ContextPtr context, std::shared_ptr<const Plan> plan);
  ~VulkanExecutable() override;

  /// Binds and queues one replay; returns its position on the timeline. One thread at a time.
  std::uint64_t replay(const Bindings& bindings);
  const Recording& recording() const { return recording_; }
  /// Command buffers recorded so far.
  std::size_t instances() const { return instances_.size(); }
  /// As if it had all the instances that it may come to have.
  std::size_t bytes() const override;

 private:
  struct Instance;

  Instance& free_instance();
  std::unique_ptr<Instance> record();

  ContextPtr context_;
  Recording recording_;
  std::vector<std::unique_ptr<Instance>> instances_;
};

}  // namespace caldera::vulkan
