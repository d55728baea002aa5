#include "engine/compile/emit/causal.h"

#include <optional>
#include <utility>

namespace caldera {
namespace {

/// m * queries + n * keys + constant + scalar argument, at query m and key n.
struct Linear {
  std::int64_t queries = 0, keys = 0, constant = 0;
  int scalar = -1;
};

/// A key is seen iff n <= m + constant + scalar argument.
struct Bound {
  std::int64_t constant = 0;
  int scalar = -1;
};

class Reader {
 public:
  Reader(const RegionKernel& score, std::int64_t queries)
      : kernel_(score.kernel), score_(score), queries_(queries) {}

  CausalMask run() const {
    const Instruction& last = kernel_.code[kernel_.outputs[0].value];
    if (last.op != ScalarOp::select) return {};
    // seen ? score : fill, or hidden ? fill : score.
    for (bool seen : {true, false}) {
      const Instruction& fill = kernel_.code[seen ? last.c : last.b];
      if (fill.op != ScalarOp::scalar || fill.type != DType::f32) continue;
      if (const auto bound = limit(last.a, seen)) {
        CausalMask mask;
        mask.fill = score_.scalars[fill.a];
        mask.offset = bound->constant;
        if (bound->scalar >= 0) mask.offset_scalar = score_.scalars[static_cast<std::size_t>(bound->scalar)];
        return mask;
      }
    }
    return {};
  }

 private:
  const Instruction& at(std::uint16_t v) const { return kernel_.code[v]; }

  std::optional<Linear> linear(std::uint16_t v) const {
    const Instruction& i = at(v);
    if (i.type != DType::i32) return {};
    if (i.op == ScalarOp::scalar) return Linear{.scalar = i.a};
    if (i.op == ScalarOp::index) {
      const View& view = score_.indices[i.a];
      const int rank = view.strides.rank();
      for (int d = 0; d + 2 < rank; ++d) {
        if (view.strides[d] != 0) return {};
      }
      return Linear{view.strides[rank - 2], view.strides[rank - 1], view.offset, -1};
    }
    if (i.op != ScalarOp::add) return {};
    const auto a = linear(i.a), b = linear(i.b);
    if (!a || !b || (a->scalar >= 0 && b->scalar >= 0)) return {};
    return Linear{a->queries + b->queries, a->keys + b->keys, a->constant + b->constant,
                  a->scalar >= 0 ? a->scalar : b->scalar};
  }

  /// Where `condition` being `seen` leaves a causal bound: no key beyond it can be seen.
  std::optional<Bound> limit(std::uint16_t condition, bool seen) const {
    const Instruction& c = at(condition);
    switch (c.op) {
      case ScalarOp::logical_not:
        return limit(c.a, !seen);
      case ScalarOp::logical_and:
      case ScalarOp::logical_or: {
        // One bound is enough if both must hold.
        if ((c.op == ScalarOp::logical_and) != seen) return {};
        const auto a = limit(c.a, seen);
        return a ? a : limit(c.b, seen);
      }
      case ScalarOp::less:
        return seen ? compare(c.a, c.b, -1) : compare(c.b, c.a, 0);
      case ScalarOp::less_equal:
        return seen ? compare(c.a, c.b, 0) : compare(c.b, c.a, -1);
      case ScalarOp::greater:
        return seen ? compare(c.b, c.a, -1) : compare(c.a, c.b, 0);
      case ScalarOp::greater_equal:
        return seen ? compare(c.b, c.a, 0) : compare(c.a, c.b, -1);
      default:
        return {};
    }
  }

  /// low <= high + slack as n <= m + ...
  std::optional<Bound> compare(std::uint16_t low, std::uint16_t high, std::int64_t slack) const {
    const auto l = linear(low), h = linear(high);
    if (!l || !h || l->scalar >= 0) return {};
    if (l->keys - h->keys != 1) return {};
    // A single query is number 0, whatever its coefficient.
    if (queries_ != 1 && l->queries - h->queries != -1) return {};
    return Bound{h->constant - l->constant + slack, h->scalar};
  }

  const Kernel& kernel_;
  const RegionKernel& score_;
  std::int64_t queries_;
};

}  // namespace

CausalMask find_causal_mask(const RegionKernel& score, std::int64_t queries) {
  return Reader(score, queries).run();
}

}  // namespace caldera
