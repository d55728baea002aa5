#include "engine/device/vulkan/steps/product_timing.h"

#include <chrono>
#include <cstring>
#include <map>

#include "engine/device/vulkan/steps/contract_step.h"
#include "engine/device/vulkan/steps/encoder.h"
#include "engine/tensor/error.h"

namespace caldera::vulkan {
namespace {

constexpr std::int64_t kMostScratch = std::int64_t{1} << 30;
constexpr int kDispatches = 4;  // in one submit, so that what a submit costs weighs little
constexpr int kSubmits = 4;     // the first one warms up

/// A plan of one step whose buffers are all inputs, and where they lie in one scratch block.
struct Alone {
  Plan plan;
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;

  Alone(const Plan& whole, const Step& step) {
    plan.device = whole.device;
    plan.scalars = whole.scalars;
    Step copy = step;
    std::map<std::int32_t, std::int32_t> numbers;
    for (Operand& operand : copy.operands) {
      if (operand.buffer < 0) continue;
      const auto [at, added] =
          numbers.emplace(operand.buffer, static_cast<std::int32_t>(plan.buffers.size()));
      if (added) {
        PlanBuffer buffer = whole.buffers[static_cast<std::size_t>(operand.buffer)];
        buffer.role = BufferRole::input;
        offsets.push_back(bytes);
        bytes += (buffer.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
        plan.buffers.push_back(buffer);
      }
      operand.buffer = at->second;
      operand.position = -1;  // the time does not depend on it
    }
    plan.input_count = static_cast<std::int32_t>(plan.buffers.size());
    plan.steps.push_back(std::move(copy));
  }
};

/// A pool of commands and a table, for as long as they are in use.
class Trial {
 public:
  Trial(Context& context, const Recording& recording) : context_(context) {
    LogicalDevice& device = *context.device;
    const VolkDeviceTable& vk = device.vk();
    const VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                       .queueFamilyIndex = device.physical().queue_family};
    device.check(vk.vkCreateCommandPool(device.handle(), &pool, nullptr, &pool_), "creating commands");
    try {
      table_ = context.tables->allocate(recording.table.size());
    } catch (...) {
      vk.vkDestroyCommandPool(device.handle(), pool_, nullptr);
      throw;
    }
  }
  ~Trial() {
    const VolkDeviceTable& vk = context_.device->vk();
    context_.device->settle(last_);
    vk.vkDestroyCommandPool(context_.device->handle(), pool_, nullptr);
    context_.tables->release(table_, last_);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  void record(const Recording& recording) {
    LogicalDevice& device = *context_.device;
    const VolkDeviceTable& vk = device.vk();
    const VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                               .commandPool = pool_,
                                               .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                               .commandBufferCount = 1};
    device.check(vk.vkAllocateCommandBuffers(device.handle(), &allocate, &commands_), "creating commands");
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    device.check(vk.vkBeginCommandBuffer(commands_, &begin), "recording a trial");
    const VkMemoryBarrier memory{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                 .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
    for (int i = 0; i < kDispatches; ++i) {
      for (const Dispatch& dispatch : recording.dispatches) {
        vk.vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
        vk.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline->handle());
        const KernelPush push{table_.address + dispatch.block, dispatch.groups};
        vk.vkCmdPushConstants(commands_, context_.pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                              sizeof push, &push);
        vk.vkCmdDispatch(commands_, dispatch.groups, dispatch.instances, 1);
      }
    }
    device.check(vk.vkEndCommandBuffer(commands_), "recording a trial");
  }

  std::byte* table() const { return table_.mapped; }
  /// Runs the commands; seconds.
  double run() {
    const auto begin = std::chrono::steady_clock::now();
    last_ = context_.device->submit({&commands_, 1});
    context_.device->wait(last_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  Context& context_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  Piece table_;
  std::uint64_t last_ = 0;
};

}  // namespace

std::optional<double> time_product(Context& context, const Plan& plan, const Step& step,
                                   const ProductVariant& variant) {
  const Alone alone(plan, step);
  if (alone.bytes > kMostScratch) return std::nullopt;
  try {
    const VulkanStorage scratch(context.tensors, static_cast<std::size_t>(alone.bytes));
    Recording recording;
    Encoder encoder{alone.plan, context, recording, TableWriter(alone.plan, recording)};
    encoder.forced = &variant;
    const Step& only = alone.plan.steps[0];
    encode_contract(encoder, only, only.as<ContractStep>());
    for (const AddressPatch& patch : recording.addresses) {
      const VkDeviceAddress address =
          scratch.address() +
          static_cast<std::uint64_t>(alone.offsets[static_cast<std::size_t>(patch.slot)] + patch.offset);
      std::memcpy(recording.table.data() + patch.at, &address, sizeof address);
    }
    Trial trial(context, recording);
    std::memcpy(trial.table(), recording.table.data(), recording.table.size());
    trial.record(recording);
    trial.run();
    double best = trial.run();
    for (int i = 2; i < kSubmits; ++i) best = std::min(best, trial.run());
    return best / kDispatches;
  } catch (const DeviceError&) {
    // No memory to spare: the table's choice, untimed. Whatever else is wrong, the step's own run will say.
    return std::nullopt;
  }
}

}  // namespace caldera::vulkan
