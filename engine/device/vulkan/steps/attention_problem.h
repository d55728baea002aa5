// An attention step as its shaders see it: extents, strides, and how workgroups share the work.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/vulkan/steps/attention_variants.h"
#include "engine/device/vulkan/steps/context.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// Names what an operand's rows and columns are; `none`: it has none.
enum class AttentionAxis : std::uint8_t { queries, keys, d, e, none };

struct AttentionOperand {
  std::size_t operand;  // of the step
  AttentionAxis rows, columns;
};

/// The operands that the shaders' text knows, in its order: the step's named ones, then its outputs.
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

/// Says how a workgroup shares a block of scores: see shaders/attention/attention.glsl.
struct AttentionBlocking {
  /// `memory`: of the matrices q, k, v and go.
  AttentionBlocking(const Context& context, const AttentionStep& attention, const AttentionSpace& space,
                    DType memory);

  const AttentionVariant& variant;
  bool cooperative = false;  // this step goes through cooperative matrices
  std::int64_t lane_rows = 1, lane_columns = 1, tile_rows = 1, tile_columns = 4;
  std::int64_t each = 1;      // columns of an output that an invocation keeps
  bool small_code = false;    // short loops instead of unrolled ones
  bool one_subgroup = false;  // all lanes are one, whatever the driver does
  std::int64_t tasks = 0;     // blocks of rows, in all batches
  std::uint32_t groups = 0;
  std::int64_t iterations = 0;  // of all loops in the busiest invocation

  // Used where matrices are staged.
  std::int64_t wide = 4;    // elements in 16 bytes
  std::int64_t slice = 32;  // columns that are staged for products of rows
  std::int64_t piece = 4;   // rows that are staged to be added up
  std::int64_t fours = 1;   // of columns of such

  // Used where they go through cooperative matrices: attention_cooperative.glsl.
  MatrixShape matrices;
  std::int64_t subgroups = 1, sub_rows = 1, d_pad = 0, e_pad = 0;

  std::int64_t lanes() const { return lane_rows * lane_columns; }
  std::int64_t rows() const { return lane_rows * tile_rows; }
  std::int64_t columns() const { return lane_columns * tile_columns; }
  /// Fours that are staged at a time, at most.
  std::int64_t stage() const;
  /// Returns what the shader of the pass declares as shared.
  std::int64_t shared_bytes(const AttentionStep& attention) const;

 private:
  /// Whether the step is one for cooperative matrices; then shares it among subgroups.
  bool set_matrices(const Capabilities& can, const AttentionStep& attention, const AttentionSpace& space,
                    DType memory);
  void set_lanes(const Context& context, const AttentionStep& attention, const AttentionSpace& space,
                 DType memory);
};

}  // namespace caldera::vulkan
