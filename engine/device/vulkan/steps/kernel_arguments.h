// The operands of generated code over an iteration space, and their part of an argument block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/device/vulkan/glsl/variant.h"
#include "engine/device/vulkan/record/recording.h"

namespace caldera::vulkan {

/// An operand of a kernel whose strides are over `rank` dimensions of a space.
struct KernelView {
  const Operand* operand = nullptr;
  bool is_index = false;
  Access access = Access::strided;
  Dims strides;
};

/// The parts of a block that ArgumentLayout (engine/device/vulkan/glsl/variant.h) and GlslEpilogue describe.
class KernelArguments {
 public:
  /// Strides may be over the first dimensions of `extents` alone.
  KernelArguments(const Step& step, Dims extents, std::vector<KernelView> views);

  /// The addresses of memory operands, then the scalar arguments.
  void write_slots(TableWriter& table, std::span<const std::int32_t> scalars) const;
  /// Biases and strides. Throws ShapeError naming the step where they do not fit.
  void write_integers(TableWriter& table) const;

 private:
  const Step& step_;
  Dims extents_;
  std::vector<KernelView> views_;
  std::vector<std::int64_t> biases_;
};

/// `scalar` where nothing moves, else `strided`.
Access scalar_or_strided(const Dims& strides);

}  // namespace caldera::vulkan
