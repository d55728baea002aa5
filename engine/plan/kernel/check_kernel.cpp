#include "engine/plan/kernel/check_kernel.h"

#include <algorithm>

namespace caldera::verify {
namespace {

bool is_random(ScalarOp op) { return op == ScalarOp::philox_uniform || op == ScalarOp::philox_normal; }

/// The types of an instruction's operands and result fit each other.
void check_types(const Kernel& kernel, const Instruction& i) {
  const auto type_of = [&](std::uint16_t value) { return kernel.code[value].type; };
  const ScalarOpInfo& op = info(i.op);
  bool fits = true;
  if (is_memory_type(i.type)) throw Fault{"a value of a type of memory"};
  if (const auto memory = narrowed_to(i.op)) {
    fits = i.type == compute_type(*memory) && accepts(i.op, type_of(i.a));
  } else if (is_random(i.op)) {
    fits = kernel.code[i.a].op == ScalarOp::scalar && type_of(i.a) == DType::i64 && is_floating(i.type);
  } else if (i.op == ScalarOp::select) {
    fits = type_of(i.a) == DType::boolean && type_of(i.b) == i.type && type_of(i.c) == i.type;
  } else if (i.op != ScalarOp::cast && op.arity > 0) {
    fits = fits && (op.gives_boolean ? i.type == DType::boolean : i.type == type_of(i.a));
    if (op.arity == 2) fits = fits && type_of(i.a) == type_of(i.b);
  }
  if (!fits) throw Fault{"an instruction on operands of the wrong type"};
}

void check_source(const Kernel& kernel, const Instruction& i) {
  const bool loads = i.op == ScalarOp::load || i.op == ScalarOp::load_row;
  if ((loads && i.a >= kernel.inputs.size()) || (i.op == ScalarOp::scalar && i.a >= kernel.scalars.size()) ||
      (i.op == ScalarOp::index && i.a >= kernel.index_count)) {
    throw Fault{"an instruction reads an operand that does not exist"};
  }
  if ((loads && compute_type(kernel.inputs[i.a]) != i.type) ||
      (i.op == ScalarOp::scalar && kernel.scalars[i.a] != i.type)) {
    throw Fault{"an instruction reads an operand of another type"};
  }
}

}  // namespace

void check_kernel(const Kernel& kernel, bool of_region) {
  for (std::size_t v = 0; v < kernel.code.size(); ++v) {
    const Instruction& i = kernel.code[v];
    const std::uint16_t used[] = {i.a, i.b, i.c};
    for (int a = 0; a < info(i.op).arity; ++a) {
      if (used[a] >= v) throw Fault{"an instruction uses a value before it is computed"};
    }
    check_source(kernel, i);
    check_types(kernel, i);
  }
  for (const Kernel::Output& output : kernel.outputs) {
    if (output.value >= kernel.code.size()) throw Fault{"an output that is not computed"};
    if (is_memory_type(output.type) && kernel.code[output.value].type != compute_type(output.type))
      throw Fault{"an output of a type of memory that is not computed in the type for it"};
  }
  if (kernel.outputs.empty()) throw Fault{"a kernel without outputs"};

  const auto any = [&](auto holds) { return std::any_of(kernel.code.begin(), kernel.code.end(), holds); };
  const bool rows = any([](const Instruction& i) { return is_row_reduction(i.op); });
  const bool row_operands = any([](const Instruction& i) { return i.op == ScalarOp::load_row; });
  if (rows && kernel.reduce) throw Fault{"a kernel that reduces its rows and its result"};
  if (row_operands && !rows) throw Fault{"row operands without rows"};
  if (!of_region && (rows || kernel.reduce)) throw Fault{"a kernel that is not element-wise"};
  Kernel copy = kernel;
  copy.finish();
  if (copy.hash != kernel.hash) throw Fault{"the hash of another kernel"};
}

std::vector<bool> row_values(const Kernel& kernel) {
  std::vector<bool> whole;
  for (const Instruction& i : kernel.code) {
    switch (i.op) {
      case ScalarOp::load:
      case ScalarOp::index:
        whole.push_back(false);
        break;
      case ScalarOp::load_row:
      case ScalarOp::scalar:
        whole.push_back(true);
        break;
      default: {
        const int arity = info(i.op).arity;
        whole.push_back(is_row_reduction(i.op) ||
                        (whole[i.a] && (arity < 2 || whole[i.b]) && (arity < 3 || whole[i.c])));
      }
    }
  }
  return whole;
}

}  // namespace caldera::verify
