// Matrices are read where they are. For processors that act as GPUs: what is staged is stored and loaded
// again, and wide workgroups are slow. They have sums in their first cache, but it takes a second to compile
// many of them, which small work does not win back.
#include <algorithm>

#include "engine/device/vulkan/attention/families/attention_family.h"

namespace caldera::vulkan {
namespace {

constexpr AttentionLanes kDirectLanes{
    .lanes = 0, .few_lanes = 0, .columns = 4, .tile_rows = 8, .sums = 128, .few_sums = 32};

class DirectAttention final : public AttentionFamily {
 public:
  std::string_view name() const override { return "direct"; }
  int merit(bool few_cores) const override { return few_cores ? 3 : 0; }

  std::optional<AttentionBlocking> blocking(const AttentionProblem& problem) const override {
    AttentionBlocking b = kDirectLanes.grid(problem);
    b.each = std::max<std::int64_t>((attention_head(problem) + b.lane_columns - 1) / b.lane_columns, 1);
    b.wide = 16 / static_cast<std::int64_t>(size_of(problem.memory));
    kDirectLanes.fit_tiles(b, problem, *this);
    b.small_code = true;
    return b;
  }

  std::int64_t shared_bytes(const AttentionBlocking& b, const AttentionStep& attention) const override {
    const bool forward = attention.pass == AttentionPass::forward;
    const std::int64_t vote = forward && attention.causal.fill >= 0 ? 1 : 0;
    const std::int64_t blocks = (forward ? 1 : 2) * b.rows() * (b.columns() + 1);
    const std::int64_t states = forward ? 4 * b.rows() * b.lane_columns : 0;
    return 4 * (blocks + states + vote);
  }

  std::int64_t iterations(const AttentionBlocking& b, const AttentionProblem& problem,
                          std::int64_t tasks) const override {
    const auto product = [&](std::int64_t length) {
      return b.small_code ? length + 2 : length / 4 + length % 4 + 3;
    };
    return AttentionLoops{product(problem.d()), product(problem.e()), b.columns() + 1}.iterations(b, problem,
                                                                                                  tasks);
  }

  std::string definitions(const AttentionBlocking& /*b*/, DType /*memory*/) const override {
    return "#define WEIGHT(x) f_exp(x)\n";
  }
  std::string_view text(AttentionPass /*pass*/) const override { return "attention_direct"; }
  bool loads_vectors() const override { return true; }
};

}  // namespace

const AttentionFamily& direct_attention() {
  static const DirectAttention kFamily;
  return kFamily;
}

}  // namespace caldera::vulkan
