#include "engine/device/reference/reference_plan.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "engine/device/reference/reference_step.h"

namespace caldera::reference {
namespace {

Point dims_between(const Dims& dims, std::size_t begin, std::size_t end) {
  const auto all = dims.span();
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
}

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

  void take(Number x) {
    const ScalarOp op = combine_ == Combine::sum       ? ScalarOp::add
                        : combine_ == Combine::product ? ScalarOp::mul
                        : combine_ == Combine::maximum ? ScalarOp::maximum
                                                       : ScalarOp::minimum;
    total_ = apply_scalar_op(op, type_, type_, total_, x, {});
  }
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

void run_reduction(const StepMemory& memory, const KernelUse& use) {
  const Kernel& kernel = use.kernel;
  const auto inner = static_cast<std::size_t>(int{memory.step().reduce_rank});
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

Combine combine_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::row_sum:
      return Combine::sum;
    case ScalarOp::row_maximum:
      return Combine::maximum;
    case ScalarOp::row_minimum:
      return Combine::minimum;
    case ScalarOp::row_product:
      return Combine::product;
    default:
      throw std::logic_error("reference: not a row reduction");
  }
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
void run_rows(const StepMemory& memory, const KernelUse& use) {
  const Kernel& kernel = use.kernel;
  const auto inner = static_cast<std::size_t>(int{memory.step().reduce_rank});
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

void run_region(const StepMemory& memory) {
  const KernelUse use{*memory.step().kernel};
  const auto& code = use.kernel.code;
  if (use.kernel.reduce) return run_reduction(memory, use);
  if (std::any_of(code.begin(), code.end(), [](const Instruction& i) { return is_row_reduction(i.op); }))
    return run_rows(memory, use);
  for_each_point(memory.leading_dims(0),
                 [&](const Point& at) { store_outputs(memory, use, at, evaluate(memory, use, at)); });
}

Number scattered(const Step& step, Number old, Number update) {
  const auto combined = [&](ScalarOp op) {
    return apply_scalar_op(op, step.dtype, step.dtype, old, update, {});
  };
  switch (step.scatter) {
    case Scatter::set:
      return update;
    case Scatter::maximum:
      return combined(ScalarOp::maximum);
    case Scatter::minimum:
      return combined(ScalarOp::minimum);
    case Scatter::add:
      break;
  }
  return combined(ScalarOp::add);
}

void run_indexed(const StepMemory& memory) {
  const Step& step = memory.step();
  const bool scatter = step.kind == StepKind::scatter_add;
  for_each_point(memory.leading_dims(0), [&](const Point& at) {
    const std::int64_t index = memory.read(1, memory.type(1), at).i;
    const bool inside = index >= 0 && index < step.axis_extent;
    const std::int64_t along = inside ? index * step.axis_stride : 0;
    if (!scatter) {
      Number value{std::numeric_limits<double>::quiet_NaN(), 0};
      if (inside) value = read_number(memory.bytes(0), step.dtype, memory.element(0, at) + along);
      memory.write(2, step.dtype, at, value);
    } else if (inside) {
      const std::int64_t element = memory.element(2, at) + along;
      const Number old = read_number(memory.bytes(2), step.dtype, element);
      write_number(memory.bytes(2), step.dtype, element,
                   scattered(step, old, memory.read(0, step.dtype, at)));
    }
  });
}

}  // namespace

Point StepMemory::leading_dims(std::size_t left_out) const {
  return dims_between(step_.dims, 0, static_cast<std::size_t>(step_.dims.rank()) - left_out);
}

Point StepMemory::trailing_dims(std::size_t count) const {
  const auto rank = static_cast<std::size_t>(step_.dims.rank());
  return dims_between(step_.dims, rank - count, rank);
}

std::int64_t StepMemory::element(std::size_t k, const Point& at) const {
  const Operand& operand = step_.operands.at(k);
  std::int64_t element = operand.offset;
  for (std::size_t d = 0; d < at.size(); ++d) element += at[d] * operand.strides[static_cast<int>(d)];
  return element;
}

Number StepMemory::read(std::size_t k, DType type, const Point& at) const {
  return read_number(bytes(k), type, element(k, at));
}

void StepMemory::write(std::size_t k, DType type, const Point& at, Number value) const {
  write_number(bytes(k), type, element(k, at), rounded(type, value));
}

Number StepMemory::scalar(std::int32_t slot, DType type) const {
  // Bound scalars first, then the plan's constants.
  const auto number = static_cast<std::size_t>(slot);
  const std::size_t bound = memory_.scalars.size();
  const std::uint64_t bits = number < bound ? memory_.scalars[number] : plan_.constants.at(number - bound);
  std::vector<std::byte> raw(8);
  std::memcpy(raw.data(), &bits, 8);
  return read_number(raw, type, 0);
}

std::vector<std::byte>& StepMemory::bytes(std::size_t k) const {
  return memory_.buffers.at(static_cast<std::size_t>(step_.operands.at(k).buffer));
}

DType StepMemory::type(std::size_t k) const {
  return plan_.buffers.at(static_cast<std::size_t>(step_.operands.at(k).buffer)).dtype;
}

bool is_source(ScalarOp op) {
  return op == ScalarOp::load || op == ScalarOp::load_row || op == ScalarOp::scalar || op == ScalarOp::index;
}

Number source_at(const StepMemory& memory, const KernelUse& use, const Instruction& i, const Point& at,
                 const std::vector<Number>& given) {
  switch (i.op) {
    case ScalarOp::scalar:
      return memory.scalar(memory.step().scalars.at(use.first_scalar + i.a), use.kernel.scalars.at(i.a));
    case ScalarOp::index:
      return convert(DType::i64, i.type, integer(memory.element(use.index(i.a), at)));
    default:
      if (i.a < use.given) return given.at(i.a);
      return memory.read(use.input(i.a), use.kernel.inputs.at(i.a), at);
  }
}

Number function_of(const Kernel& kernel, const Instruction& i, Number a, Number b, Number c) {
  if (i.op == ScalarOp::philox_uniform || i.op == ScalarOp::philox_normal)
    return random_number(i.op, i.type, static_cast<std::uint64_t>(a.i), static_cast<std::uint32_t>(b.i));
  return apply_scalar_op(i.op, kernel.code.at(i.op == ScalarOp::select ? i.b : i.a).type, i.type, a, b, c);
}

std::vector<Number> evaluate(const StepMemory& memory, const KernelUse& use, const Point& at,
                             const std::vector<Number>& given) {
  std::vector<Number> values;
  values.reserve(use.kernel.code.size());
  for (const Instruction& i : use.kernel.code) {
    if (is_source(i.op)) {
      values.push_back(source_at(memory, use, i, at, given));
      continue;
    }
    const int arity = info(i.op).arity;
    values.push_back(function_of(use.kernel, i, values.at(i.a), arity > 1 ? values.at(i.b) : Number{},
                                 arity > 2 ? values.at(i.c) : Number{}));
  }
  return values;
}

Number output_value(const Kernel& kernel, std::size_t number, const std::vector<Number>& values) {
  const auto& output = kernel.outputs.at(number);
  return convert(kernel.code.at(output.value).type, output.type, values.at(output.value));
}

void store_outputs(const StepMemory& memory, const KernelUse& use, const Point& at,
                   const std::vector<Number>& values) {
  for (std::size_t o = 0; o < use.kernel.outputs.size(); ++o)
    memory.write(use.outputs() + o, use.kernel.outputs[o].type, at, output_value(use.kernel, o, values));
}

void run_reference(const Plan& plan, PlanMemory& memory) {
  for (const Step& step : plan.steps) {
    const StepMemory of_step(plan, memory, step);
    switch (step.kind) {
      case StepKind::region:
        run_region(of_step);
        break;
      case StepKind::contract:
        run_contract(of_step);
        break;
      case StepKind::gather:
      case StepKind::scatter_add:
        run_indexed(of_step);
        break;
      case StepKind::linalg:
        run_linalg(of_step);
        break;
      case StepKind::attention:
      case StepKind::attention_grad_q:
      case StepKind::attention_grad_kv:
        run_attention(of_step);
        break;
    }
  }
}

}  // namespace caldera::reference
