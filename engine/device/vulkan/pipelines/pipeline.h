// A compute pipeline that is made when it is first needed, by whoever needs it first.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/device/vulkan/open/device.h"

namespace caldera::vulkan {

/// The push constants of every kernel: the address of its arguments, and how many workgroups there are along
/// x in all parts of the dispatch. Kernels use that instead of gl_NumWorkGroups, which counts one part. Then,
/// for kernels at whose end regions run (glsl/region_shader.h): how many workgroups there are in all, and the
/// addresses of the regions' arguments and of a counter.
struct KernelPush {
  VkDeviceAddress arguments = 0;
  std::uint32_t all_groups = 0;
  std::uint32_t turns = 0;
  VkDeviceAddress finish_arguments = 0;
  VkDeviceAddress finish_counter = 0;
};

/// Any thread. Whoever holds it keeps the driver's pipeline; recorded commands do not, so their owner has to.
class Pipeline {
 public:
  using Make = std::function<VkPipeline()>;

  /// `make` may be called from any thread, once. `code_bytes`: of the shader, by which its size is guessed.
  Pipeline(DevicePtr device, std::size_t code_bytes, Make make)
      : device_(std::move(device)), bytes_(kFixedBytes + kForCode * code_bytes), make_(std::move(make)) {}
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Makes it, unless another thread has begun to. Returns at once then; errors are for handle() to throw.
  void begin();
  /// Returns the handle of the pipeline. Makes it here and now if nobody has; waits for one who is at it.
  /// Throws DeviceError or Error naming the kernel, always the same, where it could not be made.
  VkPipeline handle();
  /// Whether it was tried and could not be made.
  bool has_failed() const;
  /// That it takes of the driver's memory, about: no driver tells.
  std::size_t bytes() const { return bytes_; }

 private:
  enum class State : std::uint8_t { untouched, begun, made, failed };

  static constexpr std::size_t kFixedBytes = 2048;
  static constexpr std::size_t kForCode = 4;  // for each byte: what the compiler kept of it, and machine code

  const DevicePtr device_;
  const std::size_t bytes_;
  Make make_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::untouched;
  VkPipeline made_ = VK_NULL_HANDLE;
  std::exception_ptr error_;
};

using PipelinePtr = std::shared_ptr<Pipeline>;

/// Makes those that are not, on as many threads as there are cores (fewer where other plans are being
/// prepared as well), this one among them. Returns when none is left that nobody has begun.
void make_side_by_side(const std::vector<PipelinePtr>& pipelines);

}  // namespace caldera::vulkan
