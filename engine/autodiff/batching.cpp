#include "engine/autodiff/batching.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/opaque_call.h"
#include "engine/graph/convolution_node.h"
#include "engine/graph/quantized_node.h"
#include "engine/graph/transfer.h"
#include "ops/core/broadcast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/shape/manipulation.h"

namespace caldera {
namespace {

/// What a rule sees.
struct BatchContext {
  const Node& node;
  std::span<const Batched> inputs;
  const Examples& examples;

  std::span<const std::int64_t> attributes() const { return node.attributes().values(); }
  const LazyTensor& value(std::size_t i) const { return inputs[i].value; }
  std::int64_t size() const { return examples.size; }
  LazyTensor mapped(std::size_t i) const { return with_mapped_axis(inputs[i], examples); }
};

/// The shape of all examples.
Shape widened(const Shape& shape, std::int64_t size, std::string_view what) {
  if (shape.rank() == kMaxRank) {
    throw ShapeError(
        fmt::format("vmap: '{}' of shape {} has more than {} dimensions with the mapped axis; a tensor has "
                    "no more",
                    what, shape.to_string(), kMaxRank));
  }
  Shape all = shape;
  all.insert(0, size);
  return all;
}

/// The same operation with other inputs, attributes and extents.
LazyTensor rebuilt_as(const BatchContext& c, std::span<const LazyTensor> inputs,
                      std::span<const std::int64_t> attributes) {
  const Shape shape = widened(c.node.shape(), c.size(), c.node.op().name);
  ops::check_extents(c.node.op().name, shape, c.node.dtype());
  std::vector<Node*> nodes;
  nodes.reserve(inputs.size());
  for (const LazyTensor& input : inputs) nodes.push_back(&input.node());
  return LazyTensor(Node::make(c.node.op(), shape, c.node.dtype(), c.node.device(), nodes, attributes));
}

std::vector<LazyTensor> all_mapped(const BatchContext& c) {
  std::vector<LazyTensor> inputs;
  inputs.reserve(c.inputs.size());
  for (std::size_t i = 0; i < c.inputs.size(); ++i) inputs.push_back(c.mapped(i));
  return inputs;
}

LazyTensor batch_elementwise(const BatchContext& c) {
  std::vector<LazyTensor> inputs;
  inputs.reserve(c.inputs.size());
  // Numbers fit every extent as they are.
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    inputs.push_back(c.value(i).node().is_scalar_leaf() ? c.value(i) : c.mapped(i));
  }
  return rebuilt_as(c, inputs, c.attributes());
}

LazyTensor batch_as_it_is(const BatchContext& c) { return rebuilt_as(c, all_mapped(c), c.attributes()); }

LazyTensor batch_reduce(const BatchContext& c) {
  const std::int64_t mask[] = {c.attributes()[0] << 1};
  return rebuilt_as(c, all_mapped(c), mask);
}

/// Products broadcast their batches. Where only the left operand is mapped its examples become rows of one
/// product, and where only the right one is and it has one column, so do its examples.
LazyTensor batch_contract(const BatchContext& c) {
  const LazyTensor& a = c.value(0);
  const LazyTensor& b = c.value(1);
  widened(c.node.shape(), c.size(), c.node.op().name);
  if (!c.inputs[0].is_mapped && a.rank() == 2 && b.shape(-1) == 1) {
    const LazyTensor rows = reshape(b, Shape{c.size(), b.shape(1)});
    return expand_dims(matmul(rows, transpose(a)), -1);
  }
  return matmul(a, b);
}

/// The axes of a tensor with `first` brought to the front, in that order.
std::vector<int> brought_to_front(int rank, const std::vector<int>& first) {
  std::vector<int> axes = first;
  for (int i = 0; i < rank; ++i) {
    if (std::find(first.begin(), first.end(), i) == first.end()) axes.push_back(i);
  }
  return axes;
}
std::vector<int> inverse(const std::vector<int>& axes) {
  std::vector<int> back(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) back[static_cast<std::size_t>(axes[i])] = static_cast<int>(i);
  return back;
}

/// Mapped x, whose axis `axis` (of one example) is indexed, with that axis and the mapped one merged into
/// axis 0; and the order of axes that led there.
struct Merged {
  LazyTensor x;
  Shape shape;  // before the two were merged
  std::vector<int> axes;
};
Merged merged(const LazyTensor& x, int axis, std::string_view what) {
  Merged out;
  out.axes = brought_to_front(x.rank(), {0, axis + 1});
  const LazyTensor moved = permute_dims(x, out.axes);
  out.shape = moved.shape();
  Shape flat = moved.shape();
  flat[1] *= flat[0];
  flat.erase(0);
  if (flat[0] > std::numeric_limits<std::int32_t>::max()) {
    throw ShapeError(fmt::format(
        "vmap: '{}' of {} examples along an axis of {} has more places than a 32-bit index counts", what,
        out.shape[0], out.shape[1]));
  }
  out.x = reshape(moved, flat);
  return out;
}

/// Mapped indices into an axis of `extent` as indices into all examples' axes one after the other. What is
/// outside stays outside.
LazyTensor merged_indices(const LazyTensor& indices, std::int64_t extent) {
  Shape one_each = indices.shape();
  for (int i = 1; i < one_each.rank(); ++i) one_each[i] = 1;
  const LazyTensor first = iota(one_each, 0, DType::i32, indices.device()) * extent;
  const LazyTensor inside = logical_and(indices >= 0, indices < extent);
  return where(inside, indices + first, -1);
}

bool has_aligned_indices(const BatchContext& c) {
  return static_cast<ops::Indices>(c.attributes()[1]) != ops::Indices::shared;
}

LazyTensor batch_gather(const BatchContext& c) {
  const auto axis = static_cast<int>(c.attributes()[0]);
  if (has_aligned_indices(c))
    return ops::gathered(c.mapped(0), c.mapped(1), axis + 1, static_cast<ops::Indices>(c.attributes()[1]));
  const LazyTensor& x = c.value(0);
  const LazyTensor& indices = c.value(1);
  widened(c.node.shape(), c.size(), c.node.op().name);
  if (!c.inputs[1].is_mapped) return take(x, indices, axis + 1);
  if (!c.inputs[0].is_mapped) {
    const LazyTensor taken = take(x, indices, axis);
    return permute_dims(taken, brought_to_front(taken.rank(), {axis}));
  }
  const Merged flat = merged(x, axis, c.node.op().name);
  const LazyTensor taken = take(flat.x, merged_indices(indices, flat.shape[1]), 0);
  // (examples, indices..., before..., after...): the indices belong between the axes of x.
  std::vector<int> axes{0};
  for (int i = 0; i < axis; ++i) axes.push_back(indices.rank() + i);
  for (int i = 1; i < indices.rank(); ++i) axes.push_back(i);
  for (int i = indices.rank() + axis; i < taken.rank(); ++i) axes.push_back(i);
  return permute_dims(taken, axes);
}

LazyTensor batch_scatter(const BatchContext& c) {
  const auto axis = static_cast<int>(c.attributes()[0]);
  const auto scatter = [&](const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                           int along) {
    return ops::scattered(static_cast<Scatter>(c.attributes()[2]), base, indices, updates, along,
                          static_cast<ops::Indices>(c.attributes()[1]));
  };
  const LazyTensor base = c.mapped(0);
  if (has_aligned_indices(c)) return scatter(base, c.mapped(1), c.mapped(2), axis + 1);
  const LazyTensor& indices = c.value(1);
  const LazyTensor updates = c.mapped(2);
  if (!c.inputs[1].is_mapped) return scatter(base, indices, updates, axis + 1);
  const Merged flat = merged(base, axis, c.node.op().name);
  std::vector<int> first{0};
  for (int i = 1; i < indices.rank(); ++i) first.push_back(axis + i);
  const LazyTensor moved = permute_dims(updates, brought_to_front(updates.rank(), first));
  const LazyTensor all = scatter(flat.x, merged_indices(indices, flat.shape[1]), moved, 0);
  return permute_dims(reshape(all, flat.shape), inverse(flat.axes));
}

LazyTensor batch_permute(const BatchContext& c) {
  std::vector<int> axes{0};
  for (std::int64_t axis : c.attributes()) axes.push_back(static_cast<int>(axis) + 1);
  return permute_dims(c.value(0), axes);
}

/// `blocks` lists of one number an axis: each gets one for the mapped axis in front.
std::vector<std::int64_t> with_leading(std::span<const std::int64_t> attributes, std::size_t blocks,
                                       std::initializer_list<std::int64_t> leading) {
  std::vector<std::int64_t> out;
  const std::size_t rank = attributes.size() / blocks;
  for (std::size_t b = 0; b < blocks; ++b) {
    out.push_back(leading.begin()[b]);
    const auto block = attributes.subspan(b * rank, rank);
    out.insert(out.end(), block.begin(), block.end());
  }
  return out;
}

LazyTensor batch_slice(const BatchContext& c) {
  return rebuilt_as(c, all_mapped(c), with_leading(c.attributes(), 2, {0, 1}));
}

/// The numbers that move it are the same for all examples.
LazyTensor batch_dynamic_slice(const BatchContext& c) {
  std::vector<LazyTensor> inputs{c.mapped(0)};
  for (std::size_t i = 1; i < c.inputs.size(); ++i) inputs.push_back(c.value(i));
  return rebuilt_as(c, inputs, with_leading(c.attributes(), 3, {0, 0, 1}));
}
LazyTensor batch_dynamic_update(const BatchContext& c) {
  std::vector<LazyTensor> inputs{c.mapped(0), c.mapped(1)};
  for (std::size_t i = 2; i < c.inputs.size(); ++i) inputs.push_back(c.value(i));
  return rebuilt_as(c, inputs, with_leading(c.attributes(), 1, {0}));
}

/// The fill is a number and stays one.
LazyTensor batch_pad(const BatchContext& c) {
  std::vector<LazyTensor> inputs{c.mapped(0)};
  if (c.inputs.size() > 1) {
    if (c.inputs[1].is_mapped) {
      throw NoBatchingRule("vmap: 'pad' with a fill that differs between the examples cannot be mapped");
    }
    inputs.push_back(c.value(1));
  }
  return rebuilt_as(c, inputs, with_leading(c.attributes(), 3, {0, 0, 0}));
}

LazyTensor batch_concatenate(const BatchContext& c) {
  const std::int64_t axis[] = {c.attributes()[0] + 1};
  return rebuilt_as(c, all_mapped(c), axis);
}

/// The examples of x are rows of one product. Matrices and indices are the same for all examples.
LazyTensor batch_quantized(const BatchContext& c) {
  for (std::size_t i = 1; i < c.inputs.size(); ++i) {
    if (c.inputs[i].is_mapped)
      throw NoBatchingRule("vmap: quantised matrices, and what picks them, are the same for all examples");
  }
  const QuantizedNode what = QuantizedNode::of(c.attributes());
  if (!what.is_product() || what.is_indexed)
    throw NoBatchingRule(fmt::format("vmap: '{}' of mapped inputs cannot be mapped", c.node.op().name));
  const LazyTensor x = c.mapped(0);
  std::vector<LazyTensor> inputs{reshape(x, Shape{x.shape(0) * x.shape(1), x.shape(2)})};
  for (std::size_t i = 1; i < c.inputs.size(); ++i) inputs.push_back(c.value(i));
  const std::int64_t width = c.node.shape().back();
  return reshape(
      ops::make(c.node.op(), Shape{x.shape(0) * x.shape(1), width}, c.node.dtype(), inputs, c.attributes()),
      Shape{x.shape(0), x.shape(1), width});
}

/// Both operands' examples become groups of channels. All tensors of a convolution have images or outputs
/// ahead of channels: folded() puts the examples into the axis that the groups are in.
LazyTensor batch_convolution(const BatchContext& c) {
  ConvolutionNode what = ConvolutionNode::of(c.attributes());
  const bool of_weight = what.work == ConvolutionWork::weight_gradient;
  const auto folded = [&](const LazyTensor& all, int axis) {
    Shape shape = all.shape();
    shape.erase(0);
    shape[axis] *= c.size();
    return reshape(moveaxis(all, 0, axis), shape);
  };
  // Images have channels in axis 1, weights their outputs in axis 0; the second operand of a weight's
  // gradient is an image too.
  const LazyTensor a = folded(c.mapped(0), 1), b = folded(c.mapped(1), of_weight ? 1 : 0);
  what.groups *= c.size();
  const int axis = of_weight ? 0 : 1;
  Shape shape = c.node.shape();
  const Shape one = shape;
  shape[axis] *= c.size();
  const LazyTensor y = ops::make(c.node.op(), shape, c.node.dtype(), {a, b}, what.attributes());
  Shape split = one;
  split.insert(axis, c.size());
  return moveaxis(reshape(y, split), axis, 0);
}

LazyTensor batch_transfer(const BatchContext& c) { return to(c.value(0), c.node.device()); }

using BatchRule = LazyTensor (*)(const BatchContext&);

/// Of a node with a mapped input. Sources have no inputs, so that none of theirs is mapped, and the
/// compiler's own operations are in no graph.
BatchRule batch_rule_of(OpClass kind) {
  switch (kind) {
    case OpClass::elementwise:
    case OpClass::linalg:  // a batch of one extent more
    case OpClass::sort:
      return batch_elementwise;
    case OpClass::reduce:
      return batch_reduce;
    case OpClass::contract:
      return batch_contract;
    case OpClass::gather:
      return batch_gather;
    case OpClass::scatter:
      return batch_scatter;
    case OpClass::reshape:
    case OpClass::broadcast:
      return batch_as_it_is;
    case OpClass::permute:
      return batch_permute;
    case OpClass::slice:
      return batch_slice;
    case OpClass::dynamic_slice:
      return batch_dynamic_slice;
    case OpClass::dynamic_update:
      return batch_dynamic_update;
    case OpClass::pad:
      return batch_pad;
    case OpClass::concatenate:
      return batch_concatenate;
    case OpClass::transfer:
      return batch_transfer;
    case OpClass::quantized:
      return batch_quantized;
    case OpClass::convolution:
      return batch_convolution;
    default:
      return nullptr;
  }
}

/// Nothing is computed: the value is that of input 0, mapped or not, and the other inputs come along.
Batched batch_in_name(const Node& node, std::span<const Batched> inputs, const Examples& examples) {
  Batched value = inputs[0];
  const bool is_mapped_result = is_result(node) && inputs[1].is_mapped;
  if (is_mapped_result && inputs[1].value.node().call_rule()->maps_all_results()) {
    value = {with_mapped_axis(value, examples), true};
  }
  std::vector<Node*> nodes{&value.value.node()};
  for (std::size_t i = 1; i < inputs.size(); ++i) nodes.push_back(&inputs[i].value.node());
  return {LazyTensor(Node::make(node.op(), value.value.shape(), node.dtype(), node.device(), nodes,
                                node.attributes().values())),
          value.is_mapped};
}

/// The call of all examples. At least one of its inputs is mapped.
LazyTensor batch_call(const Node& call, std::span<const Batched> inputs, const Examples& examples) {
  const std::size_t count = argument_count(call);
  const bool maps_values = call.call_rule()->maps_all_results();
  std::vector<LazyTensor> all;
  all.reserve(inputs.size());
  std::vector<bool> is_mapped;
  for (const Batched& input : inputs) {
    const bool is_value = is_mapped.size() == count;
    if (!is_value) is_mapped.push_back(input.is_mapped);
    all.push_back(is_value && maps_values ? with_mapped_axis(input, examples) : input.value);
  }
  const std::span<const LazyTensor> span(all);
  return make_call(call.call_rule()->mapped(is_mapped, examples.placeholders), span.first(count),
                   span.subspan(count));
}

/// The same operation, and still the same for every example.
Batched rebuilt(const Node& node, std::span<const Batched> inputs) {
  std::vector<Node*> nodes;
  nodes.reserve(inputs.size());
  for (const Batched& input : inputs) nodes.push_back(&input.value.node());
  return {LazyTensor(node.with_inputs(nodes)), false};
}

}  // namespace

LazyTensor with_mapped_axis(const Batched& x, const Examples& examples) {
  if (x.is_mapped) return x.value;
  return with_mapped_axis({placed_like(x.value, examples.placeholders[0]), false}, examples.size);
}

LazyTensor with_mapped_axis(const Batched& x, std::int64_t examples) {
  if (x.is_mapped) return x.value;
  return broadcast_to(x.value, widened(x.value.shape(), examples, x.value.node().op().name));
}

Batched batch(const Node& node, std::span<const Batched> inputs, const Examples& examples) {
  const OpClass kind = node.op().kind;
  if (kind == OpClass::identity || kind == OpClass::barrier) return batch_in_name(node, inputs, examples);
  const bool any = std::any_of(inputs.begin(), inputs.end(), [](const Batched& x) { return x.is_mapped; });
  if (node.is_call()) {
    return any ? Batched{batch_call(node, inputs, examples), true} : rebuilt(node, inputs);
  }
  const BatchRule rule = batch_rule_of(kind);
  if (rule == nullptr) {
    throw NoBatchingRule(fmt::format("vmap: '{}' (shape {}) has no rule for a mapped operand", node.op().name,
                                     node.shape().to_string()));
  }
  return any ? Batched{rule({node, inputs, examples}), true} : rebuilt(node, inputs);
}

}  // namespace caldera
