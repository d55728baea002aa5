// A family of kernels for attention: one interface, behind which everything is that is particular to one way
// of computing it. A family is a file in families/ and a line of attention_families.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/device/vulkan/attention/families/attention_problem.h"

namespace caldera::vulkan {

class AttentionFamily;

/// Says how workgroups share an attention step: see shaders/attention/attention.glsl.
struct AttentionBlocking {
  const AttentionFamily* family = nullptr;  // that it is of; set by share_attention()
  std::int64_t lane_rows = 1, lane_columns = 1, tile_rows = 1, tile_columns = 4;
  std::int64_t each = 1;      // columns of an output that an invocation keeps
  bool small_code = false;    // short loops instead of unrolled ones, while the driver does not end them
  bool one_subgroup = false;  // all lanes are one, whatever the driver does
  std::int64_t tasks = 0;     // blocks of rows, in all batches
  std::uint32_t groups = 0;
  std::int64_t iterations = 0;  // of all loops in the busiest invocation

  // Used where matrices go through shared memory: attention_staged.glsl.
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
};

/// Immutable: any thread.
class AttentionFamily {
 public:
  AttentionFamily() = default;
  virtual ~AttentionFamily() = default;
  AttentionFamily(const AttentionFamily&) = delete;
  AttentionFamily& operator=(const AttentionFamily&) = delete;

  /// Returns the name that pins it: CALDERA_VULKAN_ATTENTION.
  virtual std::string_view name() const = 0;
  /// Says what the device lacks for any step; empty: nothing.
  virtual std::string why_not(const Capabilities& can) const;
  /// Says how well it suits a device that lacks nothing for it: of all families the device takes the best.
  virtual int merit(bool few_cores) const = 0;
  /// Names the family that computes the steps which this one is not for; empty: it is for all.
  virtual std::string_view otherwise() const { return {}; }
  /// Says whether weights are rounded to the type of the operands before they are multiplied with values.
  virtual bool rounds_weights() const { return false; }

  /// Shares a step: lanes, tiles, and small_code as it is wanted. Nothing for a step that it is not for.
  virtual std::optional<AttentionBlocking> blocking(const AttentionProblem& problem) const = 0;
  /// Says whether blocks may have more columns than blocking() said, where loops are too long for the driver.
  virtual bool may_widen() const { return true; }
  /// Returns what the shader of the pass declares as shared.
  virtual std::int64_t shared_bytes(const AttentionBlocking& b, const AttentionStep& attention) const = 0;
  /// Counts the loop iterations of the busiest invocation, which has `tasks` blocks of rows: every level of
  /// every loop.
  virtual std::int64_t iterations(const AttentionBlocking& b, const AttentionProblem& problem,
                                  std::int64_t tasks) const = 0;

  /// Writes the definitions that its text asks for, and WEIGHT(x), which is exp(x).
  virtual std::string definitions(const AttentionBlocking& b, DType memory) const = 0;
  /// Names its text, shaders/attention/NAME.glsl, which attention.glsl includes as attention_family.glsl.
  virtual std::string_view text(AttentionPass pass) const = 0;
  /// Says whether rows of contiguous f32 may be loaded as vectors (VECTOR_LOADS).
  virtual bool loads_vectors() const { return false; }
  /// Says whether every subgroup must have the device's size.
  virtual bool full_subgroups() const { return false; }
};

/// Says how a family that gives invocations tiles of scores likes its workgroups.
struct AttentionLanes {
  std::int64_t lanes;  // of a workgroup, and of one with no more than kFewRows rows; 0: a subgroup's
  std::int64_t few_lanes;
  std::int64_t columns;    // of a workgroup's lanes as a grid, where there are as many rows as it has
  std::int64_t tile_rows;  // of a block of scores that an invocation computes, at most
  std::int64_t sums;       // that an invocation keeps of its outputs; and where there is little to compute
  std::int64_t few_sums;

  static constexpr std::int64_t kFewRows = 16;

  /// Shares a workgroup's invocations among rows and columns.
  AttentionBlocking grid(const AttentionProblem& problem) const;
  /// Sets tile_rows: as many as an invocation's sums, the rows that there are, and the device's shared memory
  /// allow.
  void fit_tiles(AttentionBlocking& b, const AttentionProblem& problem, const AttentionFamily& family) const;
};

/// Columns of an output that go through an invocation, at most: e, d, or either of them.
std::int64_t attention_head(const AttentionProblem& problem);

/// Counts iterations where a block takes products of rows of length d and e, and adds up rows.
struct AttentionLoops {
  std::int64_t product_d, product_e, sum;

  std::int64_t iterations(const AttentionBlocking& b, const AttentionProblem& problem,
                          std::int64_t tasks) const;
};

/// exp(x) as exp2, as GPUs compute it: off by a few ulp and by what its argument is rounded, which is the
/// score's own error.
inline constexpr std::string_view kAttentionExp2 = "#define WEIGHT(x) exp2((x) * 1.44269504)\n";

}  // namespace caldera::vulkan
