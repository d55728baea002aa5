// Matrices of f16 go through cooperative matrices with sums of f32; weights are rounded to f16. Steps of
// other types, of few rows or of large heads are computed as if staged.
#include <fmt/core.h>

#include <algorithm>

#include "engine/device/vulkan/attention/families/attention_family.h"

namespace caldera::vulkan {
namespace {

constexpr std::int64_t kMostMatrixHead = 128;  // of outputs that subgroups keep in cooperative matrices
constexpr std::int64_t kFewestMatrixRows = 16;
constexpr std::int64_t kMatrixLaneColumns = 8;
constexpr std::int64_t kMatrixPad = 8;       // f16 behind a row, so that its neighbour begins in another bank
constexpr std::int64_t kMatrixAligned = 16;  // bytes ahead of blocks and weights

std::int64_t whole_matrices(std::int64_t x, std::int64_t side) {
  const std::int64_t unit = std::max<std::int64_t>(side, 8);
  return (x + unit - 1) / unit * unit;
}

class CooperativeAttention final : public AttentionFamily {
 public:
  std::string_view name() const override { return "cooperative"; }
  std::string why_not(const Capabilities& can) const override {
    return can.matrix_f16 ? ""
                          : "needs cooperative matrices (VK_KHR_cooperative_matrix) of f16 with sums of f32";
  }
  int merit(bool few_cores) const override { return few_cores ? 0 : 2; }
  std::string_view otherwise() const override { return "staged"; }
  bool rounds_weights() const override { return true; }

  std::optional<AttentionBlocking> blocking(const AttentionProblem& problem) const override {
    const Capabilities& can = problem.can;
    const std::int64_t d = problem.d(), e = problem.e(), size = can.subgroup_size;
    if (!can.matrix_f16 || !can.storage_16bit || problem.memory != DType::f16 || std::min(d, e) <= 0 ||
        std::max(d, e) > kMostMatrixHead || problem.rows() < kFewestMatrixRows || size < kMatrixLaneColumns)
      return std::nullopt;
    AttentionBlocking b;
    b.matrices = can.matrix_f16;
    // Gradients multiply by either of them along both sides of the matrices, which are powers of two.
    const std::int64_t both = problem.is_forward() ? 0 : std::max(b.matrices.n, b.matrices.k);
    b.d_pad = whole_matrices(d, std::max<std::int64_t>(b.matrices.k, both));
    b.e_pad = whole_matrices(e, std::max<std::int64_t>(b.matrices.n, both));
    b.sub_rows = std::max<std::int64_t>(b.matrices.m, kFewestMatrixRows);
    b.lane_columns = kMatrixLaneColumns;
    b.tile_rows = std::max<std::int64_t>(b.sub_rows * b.lane_columns / size, 1);
    b.tile_columns = Capabilities::kMatrixSide / b.lane_columns;
    b.wide = 8;
    b.small_code = problem.few_cores;
    // Gradients have twice the tiles: two subgroups leave room for a second workgroup.
    for (b.subgroups = problem.is_forward() ? 4 : 2; b.subgroups > 0; b.subgroups /= 2) {
      b.lane_rows = b.subgroups * size / b.lane_columns;
      const bool is_used = b.subgroups == 1 || b.subgroups / 2 * b.sub_rows < problem.rows();
      if (is_used && b.rows() == b.subgroups * b.sub_rows && b.lanes() <= can.max_invocations &&
          b.subgroups <= can.max_subgroups && shared_bytes(b, problem.attention) <= can.shared_memory)
        return b;
    }
    return std::nullopt;
  }
  bool may_widen() const override { return false; }

  std::int64_t shared_bytes(const AttentionBlocking& b, const AttentionStep& attention) const override {
    const std::int64_t rows = b.rows(), columns = b.columns();
    if (attention.pass != AttentionPass::forward) {
      // Both factors of two products, two blocks of scores, what goes through the matrices.
      const std::int64_t tiles = attention.pass == AttentionPass::grad_kv ? 2 : 1;
      const std::int64_t halves = (rows + columns) * (b.d_pad + kMatrixPad + b.e_pad + kMatrixPad) +
                                  tiles * rows * (columns + kMatrixPad);
      return 4 * (2 * rows * (columns + 4) + 1) + 2 * halves + kMatrixAligned * (1 + tiles);
    }
    const std::int64_t vote = attention.causal.fill >= 0 ? 1 : 0;
    const std::int64_t halves = rows * (b.d_pad + kMatrixPad) +
                                columns * (std::max(b.d_pad, b.e_pad) + kMatrixPad) +
                                rows * (columns + kMatrixPad);
    return 4 * (rows * (columns + 4) + rows * b.lane_columns + rows + 1 + vote) + 2 * halves +
           2 * kMatrixAligned;
  }

  std::int64_t iterations(const AttentionBlocking& b, const AttentionProblem& problem,
                          std::int64_t tasks) const override {
    const std::int64_t size = b.sub_rows * b.lane_columns / b.tile_rows;  // of a subgroup
    const std::int64_t scaled = (b.sub_rows / b.matrices.m) * ((b.d_pad + b.e_pad) / b.matrices.n) *
                                (b.matrices.m * b.matrices.n / size + 2);
    const std::int64_t all_staged = 2 * (b.columns() * std::max(b.d_pad, b.e_pad) / 8 / b.lanes() + 2);
    const std::int64_t turn = all_staged + scaled + 3 * b.tile_rows * (b.lane_columns + b.tile_columns + 2) +
                              (problem.d() + problem.e()) * b.sub_rows / 8 + b.columns() +
                              (problem.is_forward() ? 0 : 4 * b.tile_rows + 4 * b.columns());
    const std::int64_t turns = (problem.others() + b.columns() - 1) / b.columns() + 2;
    return tasks * (turns * turn + b.rows() * (b.d_pad + b.e_pad) / 8 / b.lanes() + 2 * scaled + b.rows() +
                    10 * (problem.space.batch.rank() + 1) + 1) +
           1;
  }

  std::string definitions(const AttentionBlocking& b, DType /*memory*/) const override {
    return fmt::format(
        "{}#define WIDE {}\n#define COOPERATIVE\n#define MATRIX_M {}\n#define MATRIX_N {}\n#define MATRIX_K "
        "{}\n"
        "#define SUBGROUPS {}\n#define SUB_ROWS {}\n#define D_PAD {}\n#define E_PAD {}\n",
        kAttentionExp2, b.wide, b.matrices.m, b.matrices.n, b.matrices.k, b.subgroups, b.sub_rows, b.d_pad,
        b.e_pad);
  }
  std::string_view text(AttentionPass pass) const override {
    return pass == AttentionPass::forward ? "attention_cooperative" : "attention_cooperative_grad";
  }
  bool full_subgroups() const override { return true; }
};

}  // namespace

const AttentionFamily& cooperative_attention() {
  static const CooperativeAttention kFamily;
  return kFamily;
}

}  // namespace caldera::vulkan
