#include "engine/check/reference/kernel_builder.h"

#include <utility>

namespace caldera::reference {

KernelBuilder::KernelBuilder(std::string name) { kernel_.name = std::move(name); }

KernelBuilder::Value KernelBuilder::emit(const Instruction& instruction) {
  kernel_.code.push_back(instruction);
  return static_cast<Value>(kernel_.code.size() - 1);
}

KernelBuilder::Value KernelBuilder::load(DType type) {
  kernel_.inputs.push_back(type);
  return emit({ScalarOp::load, compute_type(type), static_cast<Value>(kernel_.inputs.size() - 1)});
}

KernelBuilder::Value KernelBuilder::load_row(DType type) {
  kernel_.inputs.push_back(type);
  return emit({ScalarOp::load_row, compute_type(type), static_cast<Value>(kernel_.inputs.size() - 1)});
}

KernelBuilder::Value KernelBuilder::load_again(int input) {
  const auto number = static_cast<Value>(input);
  return emit({ScalarOp::load, compute_type(kernel_.inputs.at(number)), number});
}

KernelBuilder::Value KernelBuilder::index() {
  return emit({ScalarOp::index, DType::i32, static_cast<Value>(kernel_.index_count++)});
}

KernelBuilder::Value KernelBuilder::scalar(DType type) {
  kernel_.scalars.push_back(type);
  return emit({ScalarOp::scalar, type, static_cast<Value>(kernel_.scalars.size() - 1)});
}

KernelBuilder::Value KernelBuilder::op(ScalarOp op, Value a, Value b, Value c) {
  const DType operand = kernel_.code.at(op == ScalarOp::select ? b : a).type;
  return emit({op, value_type(op, operand), a, b, c});
}

KernelBuilder::Value KernelBuilder::cast(Value a, DType type) {
  const DType computed = compute_type(type);
  const DType from = kernel_.code.at(a).type;
  const bool narrow = is_narrow_integer(type);
  if (!narrow || (from != computed && !is_floating(from))) a = emit({ScalarOp::cast, computed, a});
  return narrow ? op(narrowing(type), a) : a;
}

KernelBuilder::Value KernelBuilder::philox(ScalarOp op, DType type, Value seed, Value index) {
  return emit({op, type, seed, index});
}

KernelBuilder& KernelBuilder::store(Value value) { return store(value, kernel_.code.at(value).type); }

KernelBuilder& KernelBuilder::store(Value value, DType type) {
  kernel_.outputs.push_back({value, type});
  return *this;
}

KernelBuilder& KernelBuilder::reduce(Combine combine) {
  kernel_.reduce = combine;
  return *this;
}

std::shared_ptr<const Kernel> KernelBuilder::finish() {
  kernel_.finish();
  return std::make_shared<const Kernel>(kernel_);
}

std::shared_ptr<Kernel> one_op_kernel(ScalarOp op, DType operand, DType result) {
  auto kernel = std::make_shared<Kernel>();
  kernel->name = std::string(info(op).name);
  const int arity = info(op).arity;
  for (int i = 0; i < arity; ++i) {
    const DType type = op == ScalarOp::select && i == 0 ? DType::boolean : operand;
    kernel->inputs.push_back(type);
    kernel->code.push_back({ScalarOp::load, type, static_cast<std::uint16_t>(i), 0, 0});
  }
  kernel->code.push_back({op, result, 0, static_cast<std::uint16_t>(arity > 1 ? 1 : 0),
                          static_cast<std::uint16_t>(arity > 2 ? 2 : 0)});
  kernel->outputs.push_back({static_cast<std::uint16_t>(arity), result});
  kernel->finish();
  return kernel;
}

std::shared_ptr<Kernel> reduce_kernel(Combine combine, DType type) {
  auto kernel = std::make_shared<Kernel>();
  kernel->name = "reduce";
  kernel->inputs = {type};
  kernel->code = {{ScalarOp::load, compute_type(type), 0, 0, 0}};
  kernel->outputs = {{0, type}};
  kernel->reduce = combine;
  kernel->finish();
  return kernel;
}

}  // namespace caldera::reference
