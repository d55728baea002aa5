// Builds nodes of shapes that need no check: those of operands, and smaller ones.
#pragma once

#include <span>

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// Returns the device of the operands that are tensors, the default device if all are numbers. Throws
/// DeviceError, naming `op`, where they are on several.
Device common_device(const OpDef& op, std::span<const LazyTensor> inputs);

/// Makes a node as make() of node_builder.h does, of a shape that check_extents() would accept: an operand
/// has it, or one with larger extents and elements. Loops that build graphs spend their time here.
LazyTensor make_checked(const OpDef& op, const InternedShape& shape, DType dtype,
                        std::span<const LazyTensor> inputs, std::span<const std::int64_t> attributes = {});
/// Makes such a node of one operand.
inline LazyTensor make_checked(const OpDef& op, const InternedShape& shape, DType dtype, const LazyTensor& x,
                               std::span<const std::int64_t> attributes = {}) {
  Node* const node = &x.node();
  const Device device = node->is_scalar_leaf() ? default_device() : node->device();
  return LazyTensor(Node::make(op, shape, dtype, device, {&node, 1}, attributes));
}
/// Makes such a node on `device`, whatever the operands are on.
LazyTensor make_checked_on(const OpDef& op, const InternedShape& shape, DType dtype, Device device,
                           std::span<const LazyTensor> inputs, std::span<const std::int64_t> attributes);

}  // namespace caldera::ops
