// Element-wise kernels over blocks of queries and keys, in memory of the caller's: they make scores of raw
// products, and the gradients of raw products of those of scores.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/device/cpu/attention/attention_masks.h"
#include "engine/device/cpu/regions/region_program.h"
#include "engine/device/cpu/regions/region_step.h"

namespace caldera::cpu {

/// Comparisons of coordinates in a kernel that is decided ahead: a causal mask has one, a window two.
inline constexpr std::size_t kMostComparisons = 2;

/// An operand over a space of batch..., rows, columns.
struct ScoreOperand {
  std::int32_t buffer = -1;
  std::int64_t offset = 0;
  std::vector<std::int64_t> batch;
  std::int64_t row = 0;
  std::int64_t column = 0;
};

/// A kernel of one f32 output over the space batch..., rows, columns. Its first `given` inputs, f32, and its
/// output are blocks that the caller names at run time.
class ScoreKernel {
 public:
  /// `operands`: the other inputs, then the index operands. `scalars`: the plan's scalar for each scalar
  /// argument.
  ScoreKernel(const Kernel& kernel, std::size_t given, std::span<const std::int64_t> batch, std::int64_t rows,
              std::int64_t columns, std::span<const ScoreOperand> operands,
              std::span<const std::int32_t> scalars);

  /// Returns the scratch bytes of a ScoreRunner; a multiple of 64.
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  /// Points that are evaluated at a time: callers that go on with as many find them in cache.
  std::int64_t tile() const { return tile_; }
  /// Whether the kernel reads the input.
  bool uses(std::size_t input) const { return whole_.program->used[input]; }
  double nanoseconds_per_point() const { return whole_.program->nanoseconds_per_element; }

 private:
  friend class ScoreRunner;
  struct Variant {
    std::shared_ptr<const RegionProgram> program;
    std::vector<std::uint16_t> used;  // of the operands those that it reads
  };
  static Variant make_variant(const Kernel& kernel, std::size_t given);

  Variant whole_;
  std::vector<CoordinateComparison> comparisons_;  // none, or those that tell the variants apart
  std::vector<Variant> variants_;                  // one for each combination of outcomes
  std::size_t given_;
  std::vector<std::int64_t> batch_;
  std::vector<ScoreOperand> operands_;
  std::vector<std::int32_t> scalars_;
  std::vector<bool> scalar_expanded_;  // read as if there were one a point
  std::int64_t tile_;
  std::size_t locations_ = 0;
  std::size_t buffer_bytes_;
  std::size_t scratch_bytes_;
};

/// Evaluates a ScoreKernel, on one thread, in scratch memory of the caller's.
class ScoreRunner {
 public:
  /// `scratch`: 64-byte aligned, ScoreKernel::scratch_bytes() of it, for as long as this lives.
  ScoreRunner(const ScoreKernel& kernel, const RunContext& context, std::byte* scratch);

  /// Moves to a position of the batch.
  void seek(std::int64_t batch);

  struct Block {
    std::int64_t row, rows, column, columns;
  };
  /// Evaluates a block. Rows of the given blocks and of the output are `leading` elements apart. The output
  /// may be one of the given blocks.
  void run(const Block& block, std::span<float* const> given, float* output, std::int64_t leading);

 private:
  struct Filled {  // what a buffer holds of an operand that is the same from row to row or column to column
    std::int64_t element;
    std::int64_t rows;
    std::int64_t columns;
    friend bool operator==(const Filled&, const Filled&) = default;
  };
  /// A comparison: true where base + row * its row + column * its column >= 0.
  struct Edge {
    std::int64_t base, row, column;
  };
  Edge edge(const CoordinateComparison& comparison) const;
  /// The outcomes of all comparisons, where they are the same at all points of a block.
  static std::optional<std::uint32_t> outcomes_of(const Block& block, std::span<const Edge> edges);
  RowFunction machine_of(std::uint32_t outcomes, std::int64_t points);
  void run_row(const Block& row, std::span<const Edge> edges, std::int64_t points,
               std::span<float* const> given, float* output);
  void place_operands(const ScoreKernel::Variant& variant, const Block& part);
  void run_tile(const ScoreKernel::Variant& variant, RowFunction machine, const Block& part,
                std::span<float* const> given, float* output, std::int64_t leading);

  const ScoreKernel& kernel_;
  const RunContext& context_;
  std::byte** pointers_ = nullptr;    // of each location
  std::byte** buffers_ = nullptr;     // tile buffer of each location
  std::int64_t* elements_ = nullptr;  // of each operand: where the current batch starts
  Filled* filled_ = nullptr;          // of each operand
  /// Holds the machine code of a variant for the block at hand, which is asked for where it is first needed.
  struct Machine {
    RowFunction function = nullptr;
    bool is_known = false;
  };
  std::array<Machine, std::size_t{1} << kMostComparisons> machines_;
};

}  // namespace caldera::cpu
