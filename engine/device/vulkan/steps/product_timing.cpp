#include "engine/device/vulkan/steps/product_timing.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/vulkan/products/product_trial.h"
#include "engine/device/vulkan/record/timestamps.h"
#include "engine/device/vulkan/steps/contract_step.h"
#include "engine/device/vulkan/steps/encoder.h"

namespace caldera::vulkan {
namespace {

constexpr std::int64_t kLongestTrial = 2;  // times what a trial is meant to take
constexpr std::int64_t kMostScratch = std::int64_t{1} << 30;

/// Bytes from the buffer's begin that an operand of the step reaches.
std::int64_t operand_reach(const Step& step, std::size_t k, const PlanBuffer& buffer) {
  const Operand& operand = step.operands[k];
  const Shape dims = step.operand_dims(k);
  std::int64_t last = operand.offset;
  for (int d = 0; d < dims.rank(); ++d) {
    if (operand.strides[d] > 0) last += operand.strides[d] * std::max<std::int64_t>(dims[d] - 1, 0);
  }
  return std::min((last + 1) * static_cast<std::int64_t>(size_of(buffer.dtype)), buffer.bytes);
}

/// A plan of one step whose buffers are all inputs, as far as it reaches into them, and where they are in one
/// scratch block.
struct Alone {
  Plan plan;
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;

  Alone(const Plan& whole, const Step& step) {
    plan.device = whole.device;
    plan.scalars = whole.scalars;
    Step copy = step;
    std::map<std::int32_t, std::int32_t> numbers;
    for (std::size_t k = 0; k < copy.operands.size(); ++k) {
      Operand& operand = copy.operands[k];
      if (operand.buffer < 0) continue;
      const PlanBuffer& original = whole.buffers[static_cast<std::size_t>(operand.buffer)];
      const std::int64_t needed = operand_reach(copy, k, original);
      const auto [at, added] =
          numbers.emplace(operand.buffer, static_cast<std::int32_t>(plan.buffers.size()));
      if (added) {
        plan.buffers.push_back(original);
        plan.buffers.back().role = BufferRole::input;
        plan.buffers.back().bytes = 0;
      }
      std::int64_t& held = plan.buffers[static_cast<std::size_t>(at->second)].bytes;
      held = std::max(held, needed);
      operand.buffer = at->second;
      operand.position = -1;  // the time does not depend on it
    }
    for (const PlanBuffer& buffer : plan.buffers) {
      offsets.push_back(bytes);
      bytes += (buffer.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    }
    plan.input_count = static_cast<std::int32_t>(plan.buffers.size());
    plan.steps.push_back(std::move(copy));
  }
};

/// Commands that run the dispatches of a recording a number of times, and a table: for as long as they are in
/// use.
class Trial {
 public:
  Trial(Context& context, Recording recording)
      : context_(context),
        recording_(std::move(recording)),
        table_(context.tables->allocate(recording_.table.size())) {
    std::memcpy(table_.mapped, recording_.table.data(), recording_.table.size());
    try {
      LogicalDevice& device = *context_.device;
      if (has_timestamps(device.physical())) stamps_.emplace(context_.device, 2U);
      const VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                         .queueFamilyIndex = device.physical().queue_family};
      device.check(device.vk().vkCreateCommandPool(device.handle(), &pool, nullptr, &pool_),
                   "creating commands");
    } catch (...) {
      context_.tables->release(table_, 0);
      throw;
    }
  }
  ~Trial() {
    context_.device->settle(last_);
    context_.device->vk().vkDestroyCommandPool(context_.device->handle(), pool_, nullptr);
    context_.tables->release(table_, last_);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// Seconds for one of `times` runs.
  double run(int times) {
    LogicalDevice& device = *context_.device;
    const VkCommandBuffer commands = record(times);
    const auto begin = std::chrono::steady_clock::now();
    last_ = device.submit({&commands, 1});
    device.wait(last_);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (stamps_) {
      const std::vector<std::uint64_t> ticks = stamps_->read();
      seconds = elapsed(device.physical(), ticks[0], ticks[1]);
    }
    return seconds.count();
  }

 private:
  VkCommandBuffer record(int times) {
    LogicalDevice& device = *context_.device;
    const VolkDeviceTable& vk = device.vk();
    device.check(vk.vkResetCommandPool(device.handle(), pool_, 0), "resetting commands");
    const VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                               .commandPool = pool_,
                                               .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                               .commandBufferCount = 1};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    device.check(vk.vkAllocateCommandBuffers(device.handle(), &allocate, &commands), "creating commands");
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    device.check(vk.vkBeginCommandBuffer(commands, &begin), "recording a trial");
    const VkMemoryBarrier memory{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                 .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
    const auto barrier = [&] {
      vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                              VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
    };
    if (stamps_) stamps_->reset(commands);
    barrier();
    if (stamps_) stamps_->take(commands, 0);
    for (int i = 0; i < times; ++i) {
      for (const Dispatch& dispatch : recording_.dispatches) {
        vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline->handle());
        const KernelPush push{table_.address + dispatch.block, dispatch.groups};
        vk.vkCmdPushConstants(commands, context_.pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                              sizeof push, &push);
        vk.vkCmdDispatch(commands, dispatch.groups, dispatch.instances, 1);
        barrier();
      }
    }
    if (stamps_) stamps_->take(commands, 1);
    device.check(vk.vkEndCommandBuffer(commands), "recording a trial");
    return commands;
  }

  Context& context_;
  Recording recording_;
  Piece table_;
  std::optional<Stamps> stamps_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::uint64_t last_ = 0;
};

/// A contraction on scratch memory, ready to run by a variant.
class Prepared {
 public:
  Prepared(Context& context, const Alone& alone, const ProductVariant& variant)
      : scratch_(context.tensors, static_cast<std::size_t>(alone.bytes)),
        trial_(context, recorded(context, alone, variant)) {}
  double run(int times) { return trial_.run(times); }

 private:
  Recording recorded(Context& context, const Alone& alone, const ProductVariant& variant) const {
    Recording recording;
    Encoder encoder{alone.plan, context, recording, TableWriter(alone.plan, recording)};
    encoder.forced = &variant;
    encode_contract(encoder, alone.plan.steps);
    for (const AddressPatch& patch : recording.addresses) {
      const VkDeviceAddress address =
          scratch_.address() +
          static_cast<std::uint64_t>(alone.offsets[static_cast<std::size_t>(patch.slot)] + patch.offset);
      std::memcpy(recording.table.data() + patch.at, &address, sizeof address);
    }
    return recording;
  }

  VulkanStorage scratch_;
  Trial trial_;
};

}  // namespace

std::optional<double> time_product(Context& context, const Plan& plan, const Step& step,
                                   const ProductVariant& variant, double stop_at) {
  const auto time = [&](const Step& part, double limit) -> std::optional<double> {
    const Alone alone(plan, part);
    if (alone.bytes > kMostScratch) return std::nullopt;
    Prepared prepared(context, alone, variant);
    return best_of_few([&](int times) { return prepared.run(times); }, limit);
  };
  const auto whole = static_cast<double>(std::max<std::int64_t>(step.flops(), 1));
  const auto share_of = [&](const Step& part) {
    return static_cast<double>(std::max<std::int64_t>(part.flops(), 1)) / whole;
  };
  try {
    const Step first = trial_step(step, kMostTrialFlops);
    // Sums so long that they cannot be cut down far enough: not worth a watchdog's attention.
    if (first.flops() > kLongestTrial * kMostTrialFlops) return std::nullopt;
    std::optional<double> seconds = time(first, stop_at * share_of(first));
    if (!seconds) return std::nullopt;
    const double estimated = *seconds / share_of(first);
    // A device that does so little in no time gets more to do: variants differ by how they fill it, too.
    const Step further = trial_step(step, further_flops(first.flops(), *seconds));
    if (estimated > stop_at || further.flops() < 2 * first.flops()) return estimated;
    try {
      seconds = time(further, stop_at * share_of(further));
    } catch (const DeviceError&) {  // no memory for more than the first
      return estimated;
    }
    return seconds ? *seconds / share_of(further) : estimated;
  } catch (const DeviceError&) {
    // No memory to spare: the table's choice, untimed. Whatever else is wrong, the step's own run will say.
    return std::nullopt;
  }
}

}  // namespace caldera::vulkan
