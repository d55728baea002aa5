#include <algorithm>
#include <limits>
#include <stdexcept>

#include "engine/check/reference/kernel_values.h"
#include "engine/check/reference/reference_steps.h"

namespace caldera::reference {
namespace {

Point joined(const Point& outer, const Point& inner) {
  Point at = outer;
  at.insert(at.end(), inner.begin(), inner.end());
  return at;
}

/// Combines one element after another in f64, or exactly.
class Accumulator {
 public:
  Accumulator(Combine combine, DType type)
      : combine_(combine), type_(is_floating(type) ? DType::f64 : type), total_(identity(type)) {}

  void take(Number x) { total_ = apply_scalar_op(facts(combine_).function, type_, type_, total_, x, {}); }
  Number total() const { return total_; }

 private:
  Number identity(DType type) const {
    const bool real = is_floating(type);
    constexpr double inf = std::numeric_limits<double>::infinity();
    switch (combine_) {
      case Combine::sum:
        return {};
      case Combine::product:
        return {1, 1};
      case Combine::maximum:
        return real ? floating(-inf) : integer(saturated(type == DType::boolean ? DType::u8 : type, -inf));
      case Combine::minimum:
        return real ? floating(inf) : integer(type == DType::boolean ? 1 : saturated(type, inf));
    }
    return {};
  }

  Combine combine_;
  DType type_;
  Number total_;
};

void run_reduction(const StepMemory& memory, const KernelUse& use, std::size_t inner) {
  const Kernel& kernel = use.kernel;
  const auto& output = kernel.outputs.at(0);
  for_each_point(memory.leading_dims(inner), [&](const Point& outer) {
    const DType type = compute_type(output.type);
    Accumulator total(*kernel.reduce, type);
    for_each_point(memory.trailing_dims(inner), [&](const Point& along) {
      const Number value = evaluate(memory, use, joined(outer, along)).at(output.value);
      total.take(convert(kernel.code.at(output.value).type, type, value));
    });
    memory.write(use.outputs(), output.type, outer, total.total());
  });
}

/// A value over one row: one number, or one for each point.
struct RowValue {
  bool per_row = false;
  std::vector<Number> numbers;
  Number at(std::size_t point) const { return numbers.at(per_row ? 0 : point); }
};

RowValue row_value(const StepMemory& memory, const KernelUse& use, const Instruction& i,
                   const std::vector<Point>& row, const Point& outer, const std::vector<RowValue>& values) {
  RowValue value;
  if (is_source(i.op)) {
    value.per_row = i.op == ScalarOp::scalar || i.op == ScalarOp::load_row;
    if (value.per_row) value.numbers.push_back(source_at(memory, use, i, outer, {}));
    if (!value.per_row)
      for (const Point& at : row) value.numbers.push_back(source_at(memory, use, i, at, {}));
    return value;
  }
  if (is_row_reduction(i.op)) {
    value.per_row = true;
    Accumulator total(combine_of(i.op), i.type);
    for (std::size_t p = 0; p < row.size(); ++p)
      total.take(convert(use.kernel.code.at(i.a).type, i.type, values.at(i.a).at(p)));
    value.numbers.push_back(rounded(i.type, total.total()));
    return value;
  }
  const int arity = info(i.op).arity;
  value.per_row = values.at(i.a).per_row && (arity < 2 || values.at(i.b).per_row) &&
                  (arity < 3 || values.at(i.c).per_row);
  const std::size_t count = value.per_row ? 1 : row.size();
  for (std::size_t p = 0; p < count; ++p) {
    value.numbers.push_back(function_of(use.kernel, i, values.at(i.a).at(p),
                                        arity > 1 ? values.at(i.b).at(p) : Number{},
                                        arity > 2 ? values.at(i.c).at(p) : Number{}));
  }
  return value;
}

/// Everything of a row is computed before any of it is stored.
void run_rows(const StepMemory& memory, const KernelUse& use, std::size_t inner) {
  const Kernel& kernel = use.kernel;
  for_each_point(memory.leading_dims(inner), [&](const Point& outer) {
    std::vector<Point> row;
    for_each_point(memory.trailing_dims(inner),
                   [&](const Point& along) { row.push_back(joined(outer, along)); });
    std::vector<RowValue> values;
    for (const Instruction& i : kernel.code) values.push_back(row_value(memory, use, i, row, outer, values));
    for (std::size_t o = 0; o < kernel.outputs.size(); ++o) {
      const auto& output = kernel.outputs[o];
      const RowValue& value = values.at(output.value);
      const DType from = kernel.code.at(output.value).type;
      const std::size_t count = value.per_row ? 1 : row.size();
      for (std::size_t p = 0; p < count; ++p)
        memory.write(use.outputs() + o, output.type, value.per_row ? outer : row[p],
                     convert(from, output.type, value.at(p)));
    }
  });
}

}  // namespace

void run_step(const StepMemory& memory, const RegionStep& region) {
  const KernelUse use{*region.kernel};
  const auto inner = static_cast<std::size_t>(int{region.reduce_rank});
  const auto& code = use.kernel.code;
  if (use.kernel.reduce) return run_reduction(memory, use, inner);
  if (std::any_of(code.begin(), code.end(), [](const Instruction& i) { return is_row_reduction(i.op); }))
    return run_rows(memory, use, inner);
  for_each_point(memory.leading_dims(0),
                 [&](const Point& at) { store_outputs(memory, use, at, evaluate(memory, use, at)); });
}

}  // namespace caldera::reference
