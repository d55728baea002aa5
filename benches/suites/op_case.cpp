#include "benches/suites/op_case.h"

#include <fmt/format.h>

#include "engine/autodiff/autodiff.h"
#include "engine/runtime/runtime.h"
#include "ops/core/sum.h"

namespace caldera::bench {
namespace {

std::string size_of_operands(const OpCase& op) {
  std::string text;
  for (const Shape& shape : op.operands)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", dims_text(shape));
  return text;
}

/// The cases describe themselves by running once on the device that computes nothing: what shape and type
/// comes out needs no second place that says it.
LazyTensor result_of(const OpCase& op) {
  Tensors operands;
  for (const Shape& shape : op.operands)
    operands.push_back(LazyTensor::zeros(shape, op.dtype, Device::null()));
  if (op.indices > 0) operands.push_back(LazyTensor::zeros({op.indices}, DType::i32, Device::null()));
  return op.function(operands);
}

/// Indices in an order without pattern; more than once only where there are more of them than the limit.
LazyTensor scattered_indices(std::int64_t count, std::int64_t limit, Device device) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<std::int32_t>((i * 7919) % limit);
  return LazyTensor::from_vector(values, {count}, device);
}

std::function<Tensors()> builder(const TensorFunction& function, const Tensors& operands, const LazyTensor& g,
                                 std::size_t gradients) {
  if (gradients == 0) return [=] { return Tensors{function(operands)}; };
  return [=] {
    const LazyTensor loss = sum(function(operands) * g);
    Tensors outputs = grad(loss, std::span(operands.data(), gradients));
    outputs.push_back(loss);
    return outputs;
  };
}

Case to_case(const OpCase& op) {
  const LazyTensor result = result_of(op);
  Case c;
  c.name = fmt::format("ops/{}{}{}", op.name, type_suffix(op.dtype), op.gradients > 0 ? "+grad" : "");
  c.shape = size_of_operands(op);
  c.dtype = result.dtype();
  c.aim_ratio = op.aim_ratio;
  double elements = 0;
  for (const Shape& shape : op.operands) elements += static_cast<double>(shape.numel());
  for (std::size_t i = 0; i < op.gradients; ++i) elements += static_cast<double>(op.operands[i].numel());
  c.bytes = bytes_of(elements, op.dtype) + bytes_of(static_cast<double>(result.numel()), result.dtype());
  if (op.bytes > 0) c.bytes = op.bytes;
  c.bytes += f32_bytes(static_cast<double>(op.indices));
  c.flops = op.flops + (op.gradients > 0 ? op.gradient_flops : 0);
  if (!op.peer.empty()) {
    c.peer = op.parameters;
    c.peer["op"] = op.peer;
    c.peer["dtype"] = name(op.dtype);
    c.peer["gradients"] = op.gradients;
    c.peer["operands"] = nlohmann::json::array();
    for (const Shape& shape : op.operands) c.peer["operands"].push_back(dims_json(shape));
    if (op.indices > 0) {
      c.peer["indices"] = op.indices;
      c.peer["index_limit"] = op.index_limit;
    }
  }
  c.make = [op, shape = result.shape(), dtype = result.dtype()](Device device) {
    Tensors operands;
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      operands.push_back(random_input(op.operands[i], i + 1, device, i == 0 ? 1 : op.scale, op.dtype));
    if (op.indices > 0) operands.push_back(scattered_indices(op.indices, op.index_limit, device));
    const LazyTensor g = op.gradients > 0 ? random_input(shape, 99, device, 1, dtype) : LazyTensor();
    Work work;
    work.build = builder(op.function, operands, g, op.gradients);
    if (op.named) {
      work.rival = [build = builder(op.named, operands, g, op.gradients)] { eval(build()); };
      work.rival_name = "named";
    }
    return work;
  };
  return c;
}

}  // namespace

void add(std::vector<Case>& cases, const OpCase& op) { cases.push_back(to_case(op)); }

void add_both(std::vector<Case>& cases, OpCase op, std::size_t count, double gradient_flops) {
  add(cases, op);
  op.gradients = count;
  op.gradient_flops = gradient_flops;
  op.aim_ratio = 0;
  add(cases, op);
}

void add_half(std::vector<Case>& cases, OpCase op) {
  for (const DType type : kHalfTypes) {
    op.dtype = type;
    add(cases, op);
  }
}

void add_both_half(std::vector<Case>& cases, OpCase op, std::size_t count, double gradient_flops) {
  for (const DType type : kHalfTypes) {
    op.dtype = type;
    add_both(cases, op, count, gradient_flops);
  }
}

}  // namespace caldera::bench
