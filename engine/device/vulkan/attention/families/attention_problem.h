// An attention step as its shaders see it: operands, extents and strides, and the device that computes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device/vulkan/open/capabilities.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// Names what an operand's rows and columns are; `none`: it has none.
enum class AttentionAxis : std::uint8_t { queries, keys, d, e, none };

struct AttentionOperand {
  std::size_t operand;  // of the step
  AttentionAxis rows, columns;
};

/// Lists the operands that the shaders' text knows, in its order: the step's named ones, then its outputs.
std::vector<AttentionOperand> attention_operands(const Step& step, const AttentionStep& attention);

/// The iteration space after merging: batch extents, then M, N, D, E; every operand's strides over all of
/// them.
struct AttentionSpace {
  explicit AttentionSpace(const Step& step);

  Dims batch;
  Dims sizes;
  std::vector<Dims> strides;

  std::int64_t batches() const;
  std::int64_t size(AttentionAxis axis) const;
  std::int64_t stride(std::size_t operand, AttentionAxis axis) const;
  Dims batch_strides(std::size_t operand) const;
};

/// Holds what a family of kernels is asked about. Refers to all that it is made of.
struct AttentionProblem {
  const AttentionStep& attention;
  const AttentionSpace& space;
  DType memory;  // of the matrices q, k, v and go
  const Capabilities& can;
  bool few_cores = false;  // a processor that acts as a GPU

  bool is_forward() const { return attention.pass == AttentionPass::forward; }
  bool is_of_keys() const { return attention.pass == AttentionPass::grad_kv; }
  std::int64_t d() const { return space.size(AttentionAxis::d); }
  std::int64_t e() const { return space.size(AttentionAxis::e); }
  /// Rows of the outputs, of one batch.
  std::int64_t rows() const {
    return space.size(is_of_keys() ? AttentionAxis::keys : AttentionAxis::queries);
  }
  /// Rows that each of them is combined with.
  std::int64_t others() const {
    return space.size(is_of_keys() ? AttentionAxis::queries : AttentionAxis::keys);
  }
};

}  // namespace caldera::vulkan
