// Matrices go through shared memory, in slices of columns for products of their rows, and in pieces of rows
// that are added up. For GPUs, which keep sums in registers.
#include <fmt/core.h>

#include <algorithm>

#include "engine/device/vulkan/attention/families/attention_family.h"

namespace caldera::vulkan {
namespace {

constexpr AttentionLanes kStagedLanes{
    .lanes = 128, .few_lanes = 64, .columns = 8, .tile_rows = 4, .sums = 64, .few_sums = 64};
constexpr std::int64_t kStagedSlice = 16;   // columns of two matrices that are staged at a time
constexpr std::int64_t kStagedFours = 512;  // for sums of rows: 8 KiB

/// Fours that are staged at a time, at most.
std::int64_t staged_fours(const AttentionBlocking& b) {
  return std::max((b.rows() + b.columns()) * (b.slice / 4 + 1), b.piece * b.fours);
}

class StagedAttention final : public AttentionFamily {
 public:
  std::string_view name() const override { return "staged"; }
  int merit(bool /*few_cores*/) const override { return 1; }

  std::optional<AttentionBlocking> blocking(const AttentionProblem& problem) const override {
    AttentionBlocking b = kStagedLanes.grid(problem);
    while (b.lane_rows > 1 && b.lane_rows >= 2 * problem.rows()) {
      b.lane_rows /= 2;
      b.lane_columns *= 2;
    }
    b.wide = 16 / static_cast<std::int64_t>(size_of(problem.memory));
    b.slice = kStagedSlice;
    b.fours = (attention_head(problem) + b.wide - 1) / b.wide * (b.wide / 4);
    b.each = (b.fours + b.lane_columns - 1) / b.lane_columns * 4;
    if (b.lane_columns > 16) b.tile_columns = 2;
    while (2 * b.piece <= b.columns() && 2 * b.piece * b.fours <= kStagedFours) b.piece *= 2;
    kStagedLanes.fit_tiles(b, problem, *this);
    while (shared_bytes(b, problem.attention) > problem.can.shared_memory && (b.piece > 4 || b.slice > 8)) {
      if (b.piece > 4) b.piece /= 2;
      if (b.slice > 8) b.slice /= 2;
    }
    return b;
  }

  std::int64_t shared_bytes(const AttentionBlocking& b, const AttentionStep& attention) const override {
    const bool forward = attention.pass == AttentionPass::forward;
    const std::int64_t vote = forward && attention.causal.fill >= 0 ? 1 : 0;
    const std::int64_t blocks = (forward ? 1 : 2) * b.rows() * (b.columns() + 1);
    const std::int64_t states = forward ? b.rows() * b.lane_columns : 0;
    return 4 * (blocks + states + vote) + 16 * staged_fours(b);
  }

  std::int64_t iterations(const AttentionBlocking& b, const AttentionProblem& problem,
                          std::int64_t tasks) const override {
    // What an invocation stages of `fours` fours.
    const auto staged = [&](std::int64_t fours) { return fours / (b.wide / 4) / b.lanes() + 2; };
    const auto product = [&](std::int64_t length) {
      return ((length + b.slice - 1) / b.slice) *
                 (staged(b.rows() * b.slice / 4) + staged(b.columns() * b.slice / 4) + 1) +
             1;
    };
    const std::int64_t sum = b.columns() / b.piece * (staged(b.piece * b.fours) + b.piece / 4 + 2) + 1;
    return AttentionLoops{product(problem.d()), product(problem.e()), sum}.iterations(b, problem, tasks);
  }

  std::string definitions(const AttentionBlocking& b, DType memory) const override {
    const char* values = "uintBitsToFloat(bits)";
    if (memory == DType::f16)
      values = "vec4(unpackHalf2x16((h) == 0 ? bits.x : bits.z), unpackHalf2x16((h) == 0 ? bits.y : bits.w))";
    if (memory == DType::bf16)
      values =
          "uintBitsToFloat(uvec4(((h) == 0 ? bits.x : bits.z) << 16, ((h) == 0 ? bits.x : bits.z) & "
          "0xffff0000u, ((h) == 0 ? bits.y : bits.w) << 16, ((h) == 0 ? bits.y : bits.w) & 0xffff0000u))";
    return fmt::format(
        "{}#define WIDE {}\n#define STAGED\n#define WIDE_VALUES(bits, h) {}\n#define SLICE {}\n"
        "#define PIECE {}\n#define FOURS {}\n#define STAGE {}\n",
        kAttentionExp2, b.wide, values, b.slice, b.piece, b.fours, staged_fours(b));
  }
  std::string_view text(AttentionPass /*pass*/) const override { return "attention_staged"; }
};

}  // namespace

const AttentionFamily& staged_attention() {
  static const StagedAttention kFamily;
  return kFamily;
}

}  // namespace caldera::vulkan
