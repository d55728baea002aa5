// Whether the score of an attention step is what its causal mask says: the fill, wherever n > m + offset. The
// kernel is run on samples of such points with numbers where they follow from coordinates, and with nothing
// known of what it loads.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/plan/kernel/fault.h"
#include "engine/plan/steps/attention.h"

namespace caldera {
namespace {

/// An integer or truth value; the fill; or anything.
struct Known {
  enum class Kind : std::uint8_t { anything, number, fill } kind = Kind::anything;
  std::int64_t number = 0;

  bool is(std::int64_t value) const { return kind == Kind::number && number == value; }
};

Known number(std::int64_t value) { return {Known::Kind::number, value}; }

std::optional<std::int64_t> compute(ScalarOp op, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  switch (op) {
    case ScalarOp::neg:
      return static_cast<std::int64_t>(-x);
    case ScalarOp::logical_not:
      return static_cast<std::int64_t>(a == 0);
    case ScalarOp::add:
      return static_cast<std::int64_t>(x + y);
    case ScalarOp::sub:
      return static_cast<std::int64_t>(x - y);
    case ScalarOp::mul:
      return static_cast<std::int64_t>(x * y);
    case ScalarOp::maximum:
      return a > b ? a : b;
    case ScalarOp::minimum:
      return a < b ? a : b;
    case ScalarOp::equal:
      return static_cast<std::int64_t>(a == b);
    case ScalarOp::not_equal:
      return static_cast<std::int64_t>(a != b);
    case ScalarOp::less:
      return static_cast<std::int64_t>(a < b);
    case ScalarOp::less_equal:
      return static_cast<std::int64_t>(a <= b);
    case ScalarOp::greater:
      return static_cast<std::int64_t>(a > b);
    case ScalarOp::greater_equal:
      return static_cast<std::int64_t>(a >= b);
    case ScalarOp::logical_and:
      return static_cast<std::int64_t>(a != 0 && b != 0);
    case ScalarOp::logical_or:
      return static_cast<std::int64_t>(a != 0 || b != 0);
    case ScalarOp::logical_xor:
      return static_cast<std::int64_t>((a != 0) != (b != 0));
    default:
      return std::nullopt;
  }
}

class Sample {
 public:
  /// `first_index`: the step's operand for the kernel's first index operand. `shift`: a value of the scalar
  /// offset.
  Sample(const StepHeader& step, const AttentionStep& attention, std::size_t first_index, std::int64_t shift)
      : step_(step), attention_(attention), first_index_(first_index), shift_(shift) {}

  bool is_fill(const std::vector<std::int64_t>& point) const {
    std::vector<Known> values;
    for (const Instruction& i : attention_.score->code) values.push_back(value_of(i, point, values));
    return values[attention_.score->outputs[0].value].kind == Known::Kind::fill;
  }

 private:
  Known value_of(const Instruction& i, const std::vector<std::int64_t>& point,
                 const std::vector<Known>& values) const {
    switch (i.op) {
      case ScalarOp::scalar: {
        const std::int32_t slot = step_.scalars[i.a];
        if (slot == attention_.causal.fill) return {Known::Kind::fill, 0};
        if (slot == attention_.causal.offset_scalar) return number(shift_);
        return {};
      }
      case ScalarOp::index: {
        const Operand& operand = step_.operands[first_index_ + i.a];
        std::int64_t value = operand.offset;
        for (std::size_t d = 0; d < point.size(); ++d)
          value += point[d] * operand.strides[static_cast<int>(d)];
        return number(value);
      }
      case ScalarOp::cast:
        return values[i.a];
      case ScalarOp::select:
        if (values[i.a].kind == Known::Kind::number) return values[values[i.a].number != 0 ? i.b : i.c];
        return values[i.b].kind == Known::Kind::fill && values[i.c].kind == Known::Kind::fill ? values[i.b]
                                                                                              : Known{};
      // One operand may be enough.
      case ScalarOp::logical_and:
        if (values[i.a].is(0) || values[i.b].is(0)) return number(0);
        break;
      case ScalarOp::logical_or:
        if (values[i.a].is(1) || values[i.b].is(1)) return number(1);
        break;
      default:
        break;
    }
    const int arity = info(i.op).arity;
    if (arity == 0 || arity > 2 || values[i.a].kind != Known::Kind::number) return {};
    if (arity == 2 && values[i.b].kind != Known::Kind::number) return {};
    const auto result = compute(i.op, values[i.a].number, arity == 2 ? values[i.b].number : 0);
    return result ? number(*result) : Known{};
  }

  const StepHeader& step_;
  const AttentionStep& attention_;
  std::size_t first_index_;
  std::int64_t shift_;
};

}  // namespace

void AttentionStep::check_values(const StepHeader& step) const {
  if (causal.fill == -1) return;
  for (std::int64_t extent : step.dims) {
    if (extent == 0) return;
  }
  const int rank = step.dims.rank();
  const std::int64_t queries = step.dims[rank - 4];
  const std::int64_t keys = step.dims[rank - 3];
  // What the contract calls for, not what named_operands() counts: the verifier is to notice where those
  // differ.
  const std::size_t named = pass == AttentionPass::forward ? 3 : 7;
  const std::size_t first_index = named + score->inputs.size() - 1;
  const std::array<std::int64_t, 5> shifts{0, 1, -1, keys / 2, keys - queries};
  const std::size_t tried = causal.offset_scalar == -1 ? 1 : shifts.size();
  for (std::size_t s = 0; s < tried; ++s) {
    const Sample sample(step, *this, first_index, shifts[s]);
    for (const std::int64_t m : {std::int64_t{0}, std::int64_t{1}, queries / 2, queries - 1}) {
      if (m >= queries) continue;
      for (const bool last : {false, true}) {
        std::vector<std::int64_t> point(static_cast<std::size_t>(rank), 0);
        for (int d = 0; last && d < rank - 4; ++d) point[static_cast<std::size_t>(d)] = step.dims[d] - 1;
        point[static_cast<std::size_t>(rank - 4)] = m;
        const std::int64_t first = causal.first_hidden(m, point[0], keys) + shifts[s];
        for (const std::int64_t n : {std::int64_t{0}, first, first + 1, (first + keys) / 2, keys - 1}) {
          if (n < first || n < 0 || n >= keys) continue;
          point[static_cast<std::size_t>(rank - 3)] = n;
          if (!sample.is_fill(point)) throw verify::Fault{"a causal mask that the score does not have"};
        }
      }
    }
  }
}

}  // namespace caldera
