#include "engine/device/cpu/attention/attention_masks.h"

#include <array>

namespace caldera::cpu {
namespace {

bool is_signed_integer(DType type) { return type == DType::i32 || type == DType::i64; }

/// Operands that are value numbers (not input, scalar or index numbers).
int value_operands(const Instruction& i) {
  switch (i.op) {
    case ScalarOp::load:
    case ScalarOp::load_row:
    case ScalarOp::scalar:
    case ScalarOp::index:
      return 0;
    case ScalarOp::philox_uniform:
    case ScalarOp::philox_normal:
      return 2;
    default:
      return info(i.op).arity;
  }
}

/// A linear function of index operands and scalar arguments.
struct Linear {
  std::vector<std::int64_t> index, scalar;

  explicit Linear(const Kernel& kernel)
      : index(static_cast<std::size_t>(kernel.index_count)), scalar(kernel.scalars.size()) {}
  void add(const Linear& other, std::int64_t factor) {
    for (std::size_t i = 0; i < index.size(); ++i) index[i] += factor * other.index[i];
    for (std::size_t i = 0; i < scalar.size(); ++i) scalar[i] += factor * other.scalar[i];
  }
};

std::optional<Linear> linear(const Kernel& kernel, const Instruction& i,
                             const std::vector<std::optional<Linear>>& values) {
  if (!is_signed_integer(i.type)) return std::nullopt;
  Linear result(kernel);
  switch (i.op) {
    case ScalarOp::index:
      result.index[i.a] = 1;
      return result;
    case ScalarOp::scalar:
      if (!is_signed_integer(kernel.scalars[i.a])) return std::nullopt;
      result.scalar[i.a] = 1;
      return result;
    case ScalarOp::neg:
    case ScalarOp::cast:
      if (!values[i.a]) return std::nullopt;
      result.add(*values[i.a], i.op == ScalarOp::neg ? -1 : 1);
      return result;
    case ScalarOp::add:
    case ScalarOp::sub:
      if (!values[i.a] || !values[i.b]) return std::nullopt;
      result.add(*values[i.a], 1);
      result.add(*values[i.b], i.op == ScalarOp::sub ? -1 : 1);
      return result;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<CoordinateComparison> coordinate_comparisons(const Kernel& kernel) {
  std::vector<std::optional<Linear>> values;
  std::vector<CoordinateComparison> comparisons;
  for (std::size_t v = 0; v < kernel.code.size(); ++v) {
    const Instruction& i = kernel.code[v];
    values.push_back(linear(kernel, i, values));
    const bool greater = i.op == ScalarOp::greater || i.op == ScalarOp::greater_equal;
    const bool less = i.op == ScalarOp::less || i.op == ScalarOp::less_equal;
    if ((!greater && !less) || !values[i.a] || !values[i.b]) continue;
    Linear difference(kernel);
    difference.add(*values[i.a], greater ? 1 : -1);
    difference.add(*values[i.b], greater ? -1 : 1);
    const bool strict = i.op == ScalarOp::greater || i.op == ScalarOp::less;
    comparisons.push_back({v, std::move(difference.index), std::move(difference.scalar), strict ? -1 : 0});
  }
  return comparisons;
}

Kernel decided(const Kernel& kernel, std::span<const CoordinateComparison> comparisons,
               std::uint32_t outcomes) {
  const std::size_t count = kernel.code.size();
  std::vector<std::optional<bool>> known(count);
  std::vector<std::uint16_t> stand_in(count);  // the value that another one is equal to
  std::vector<Instruction> code = kernel.code;
  for (std::size_t c = 0; c < comparisons.size(); ++c)
    known[comparisons[c].value] = ((outcomes >> c) & 1U) != 0;
  for (std::size_t v = 0; v < count; ++v) {
    Instruction& i = code[v];
    const std::array<std::uint16_t*, 3> operands{&i.a, &i.b, &i.c};
    for (int k = 0; k < value_operands(i); ++k) {
      std::uint16_t& operand = *operands[static_cast<std::size_t>(k)];
      operand = stand_in[operand];
    }
    stand_in[v] = static_cast<std::uint16_t>(v);
    const auto become = [&](std::uint16_t other) {
      stand_in[v] = other;
      known[v] = known[other];
    };
    const bool booleans =
        value_operands(i) == 2 && code[i.a].type == DType::boolean && code[i.b].type == DType::boolean;
    if (i.op == ScalarOp::select && known[i.a]) {
      become(*known[i.a] ? i.b : i.c);
    } else if (i.op == ScalarOp::logical_not && known[i.a]) {
      known[v] = !*known[i.a];
    } else if (booleans && (i.op == ScalarOp::logical_and || i.op == ScalarOp::logical_or)) {
      const bool absorbing = i.op == ScalarOp::logical_or;
      if (known[i.a] == absorbing || known[i.b] == absorbing)
        known[v] = absorbing;
      else if (known[i.a])
        become(i.b);
      else if (known[i.b])
        become(i.a);
    }
  }

  std::vector<bool> needed(count, false);
  for (const Kernel::Output& o : kernel.outputs) needed[stand_in[o.value]] = true;
  for (std::size_t v = count; v-- > 0;) {
    if (!needed[v]) continue;
    const std::array<std::uint16_t, 3> operands{code[v].a, code[v].b, code[v].c};
    for (int k = 0; k < value_operands(code[v]); ++k) needed[operands[static_cast<std::size_t>(k)]] = true;
  }
  Kernel result = kernel;
  result.code.clear();
  std::vector<std::uint16_t> number(count);
  for (std::size_t v = 0; v < count; ++v) {
    if (!needed[v]) continue;
    Instruction i = code[v];
    const std::array<std::uint16_t*, 3> operands{&i.a, &i.b, &i.c};
    for (int k = 0; k < value_operands(i); ++k) {
      std::uint16_t& operand = *operands[static_cast<std::size_t>(k)];
      operand = number[operand];
    }
    number[v] = static_cast<std::uint16_t>(result.code.size());
    result.code.push_back(i);
  }
  for (Kernel::Output& o : result.outputs) o.value = number[stand_in[o.value]];
  result.finish();
  return result;
}

}  // namespace caldera::cpu
