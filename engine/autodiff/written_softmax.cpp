#include "engine/autodiff/written_softmax.h"

#include <bit>

namespace caldera {
namespace {

class SoftmaxReader {
 public:
  explicit SoftmaxReader(const Snapshot& s) : s_(s) {}

  std::optional<WrittenSoftmax> read(std::uint32_t i) const {
    if (!is_elementwise(i, ScalarOp::div)) return {};
    const std::uint32_t e = in(i, 0);
    const auto total = behind_broadcast(in(i, 1), Through::gradients);
    if (!is_elementwise(e, ScalarOp::exp) || s_.entries[e].is_target || !total ||
        !reduces(*total, ScalarOp::add) || in(*total, 0) != e)
      return {};
    const std::int64_t mask = node(*total).attributes()[0];
    if (std::popcount(static_cast<std::uint64_t>(mask)) != 1) return {};
    std::uint32_t x = in(e, 0);
    if (is_elementwise(x, ScalarOp::sub) && !s_.entries[x].is_target) {
      const auto highest = behind_broadcast(in(x, 1), Through::values);
      const bool shifted = highest && reduces(*highest, ScalarOp::maximum) && in(*highest, 0) == in(x, 0) &&
                           node(*highest).attributes()[0] == mask;
      if (shifted) x = in(x, 0);
    }
    if (node(x).shape() != node(i).shape()) return {};
    return WrittenSoftmax{x, std::countr_zero(static_cast<std::uint64_t>(mask))};
  }

 private:
  const Node& node(std::uint32_t i) const { return s_.entries[i].tensor.node(); }
  std::uint32_t in(std::uint32_t i, std::size_t k) const { return s_.entries[i].inputs[k]; }
  bool has_inputs(std::uint32_t i) const { return !s_.entries[i].inputs.empty(); }
  bool is_elementwise(std::uint32_t i, ScalarOp op) const {
    return has_inputs(i) && node(i).op().kind == OpClass::elementwise && node(i).op().scalar == op;
  }
  bool reduces(std::uint32_t i, ScalarOp op) const {
    return has_inputs(i) && !s_.entries[i].is_target && node(i).op().kind == OpClass::reduce &&
           node(i).op().scalar == op;
  }
  enum class Through { values, gradients };
  /// Reads through a node that repeats or renames another, unless a cotangent of its own would be lost, or
  /// one must not pass.
  bool passes(std::uint32_t i, OpClass kind, Through through) const {
    const OpDef& op = node(i).op();
    const bool stops = through == Through::gradients && (op.zero_gradient || op.vjp == nullptr);
    return has_inputs(i) && !s_.entries[i].is_target && op.kind == kind && !stops;
  }
  /// What is repeated along some axes, through reshapes that come back to the extents that are broadcast.
  std::optional<std::uint32_t> behind_broadcast(std::uint32_t i, Through through) const {
    while (passes(i, OpClass::identity, through)) i = in(i, 0);
    if (!passes(i, OpClass::broadcast, through)) return {};
    i = in(i, 0);
    const Shape& seen = node(i).shape();
    while (passes(i, OpClass::reshape, through) || passes(i, OpClass::identity, through)) i = in(i, 0);
    if (node(i).shape() != seen) return {};
    return i;
  }

  const Snapshot& s_;
};

}  // namespace

std::optional<WrittenSoftmax> read_softmax(const Snapshot& s, std::uint32_t i) {
  return SoftmaxReader(s).read(i);
}

}  // namespace caldera
