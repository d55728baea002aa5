#include "ops/core/checked_shape.h"

#include <fmt/core.h>

#include <array>
#include <string>
#include <vector>

namespace caldera::ops {
namespace {

std::string shapes_of(std::span<const LazyTensor> inputs) {
  std::string text;
  for (const LazyTensor& x : inputs) text += (text.empty() ? "" : ", ") + x.shape().to_string();
  return text;
}

}  // namespace

Device common_device(const OpDef& op, std::span<const LazyTensor> inputs) {
  Device device = inputs[0].device();
  bool found = false;
  for (const LazyTensor& x : inputs) {
    if (x.node().is_scalar_leaf()) continue;
    if (found && x.device() != device) {
      throw DeviceError(
          fmt::format("{}: operands are on different devices ({} and {}), shapes {}; move one with to()",
                      op.name, device.to_string(), x.device().to_string(), shapes_of(inputs)));
    }
    device = x.device();
    found = true;
  }
  return found ? device : default_device();
}

LazyTensor make_checked(const OpDef& op, const InternedShape& shape, DType dtype,
                        std::span<const LazyTensor> inputs, std::span<const std::int64_t> attributes) {
  return make_checked_on(op, shape, dtype, common_device(op, inputs), inputs, attributes);
}

LazyTensor make_checked_on(const OpDef& op, const InternedShape& shape, DType dtype, Device device,
                           std::span<const LazyTensor> inputs, std::span<const std::int64_t> attributes) {
  constexpr std::size_t kFew = 4;
  std::array<Node*, kFew> few;
  std::vector<Node*> many;
  Node** nodes = few.data();
  if (inputs.size() > kFew) {
    many.resize(inputs.size());
    nodes = many.data();
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) nodes[i] = &inputs[i].node();
  return LazyTensor(Node::make(op, shape, dtype, device, {nodes, inputs.size()}, attributes));
}

}  // namespace caldera::ops
