#include "engine/device/vulkan/attention/families/attention_problem.h"

namespace caldera::vulkan {

using Axis = AttentionAxis;

std::vector<AttentionOperand> attention_operands(const Step& step, const AttentionStep& attention) {
  const std::size_t outputs = step.first_output();
  std::vector<AttentionOperand> list = {
      {0, Axis::queries, Axis::d}, {1, Axis::keys, Axis::d}, {2, Axis::keys, Axis::e}};
  if (attention.pass == AttentionPass::forward) {
    list.push_back({outputs, Axis::queries, Axis::e});
    for (std::size_t row : {outputs + 1, outputs + 2}) list.push_back({row, Axis::queries, Axis::none});
    return list;
  }
  list.push_back({3, Axis::queries, Axis::e});
  for (std::size_t row : {4U, 5U, 6U}) list.push_back({row, Axis::queries, Axis::none});
  if (attention.pass == AttentionPass::grad_q) {
    list.push_back({outputs, Axis::queries, Axis::d});
  } else {
    list.push_back({outputs, Axis::keys, Axis::d});
    list.push_back({outputs + 1, Axis::keys, Axis::e});
  }
  return list;
}

AttentionSpace::AttentionSpace(const Step& step) {
  const bool in_parts = step.as<AttentionStep>().causal.in_parts;
  const int batch_rank = step.dims.rank() - 4;
  strides.resize(step.operands.size());
  for (int d = 0; d < batch_rank; ++d) {
    const std::int64_t extent = step.dims[d];
    if (extent == 1) continue;
    bool joins = !batch.empty() && !(in_parts && batch.rank() == 1);  // the parts stay a dimension
    for (std::size_t k = 0; joins && k < strides.size(); ++k)
      joins = strides[k].back() == step.operands[k].strides[d] * extent;
    if (joins) {
      batch[batch.rank() - 1] *= extent;
      for (std::size_t k = 0; k < strides.size(); ++k)
        strides[k][batch.rank() - 1] = step.operands[k].strides[d];
    } else {
      batch.push_back(extent);
      for (std::size_t k = 0; k < strides.size(); ++k) strides[k].push_back(step.operands[k].strides[d]);
    }
  }
  for (int d = batch_rank; d < step.dims.rank(); ++d) {
    sizes.push_back(step.dims[d]);
    for (std::size_t k = 0; k < strides.size(); ++k) strides[k].push_back(step.operands[k].strides[d]);
  }
}

std::int64_t AttentionSpace::batches() const {
  std::int64_t product = 1;
  for (std::int64_t extent : batch) product *= extent;
  return product;
}

std::int64_t AttentionSpace::size(Axis axis) const {
  return axis == Axis::none ? 1 : sizes[static_cast<int>(axis)];
}

std::int64_t AttentionSpace::stride(std::size_t operand, Axis axis) const {
  return axis == Axis::none ? 0 : strides[operand][batch.rank() + static_cast<int>(axis)];
}

Dims AttentionSpace::batch_strides(std::size_t operand) const {
  return Dims(strides[operand].span().first(static_cast<std::size_t>(batch.rank())));
}

}  // namespace caldera::vulkan
