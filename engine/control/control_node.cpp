#include "engine/control/control_node.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "engine/runtime/capture/graph_key.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"

namespace caldera {
namespace {

// Their gradients are those of the calls around them.
const OpDef kScan{.name = "scan", .kind = OpClass::control, .zero_gradient = true};
const OpDef kWhile{.name = "while_loop", .kind = OpClass::control, .zero_gradient = true};
const OpDef kCond{.name = "cond", .kind = OpClass::control, .zero_gradient = true};
const OpDef kReversal{.name = "reversal", .kind = OpClass::control, .zero_gradient = true};
const OpDef kOtherResult{.name = "other_result", .kind = OpClass::other_result, .zero_gradient = true};

const OpDef& op_of(const ControlLayout& layout) {
  switch (layout.kind) {
    case ControlKind::loop:
      return layout.has_known_turns() ? kScan : kWhile;
    case ControlKind::branch:
      return kCond;
    case ControlKind::reversal:
    case ControlKind::exchange:  // made elsewhere
      break;
  }
  return kReversal;
}

void mix(const ControlLayout& layout, Hash128& hash) {
  hash.mix(static_cast<std::uint64_t>(layout.kind) | (layout.is_backwards ? 256U : 0U));
  for (const std::uint64_t count : {layout.carries, layout.slices, layout.constants, layout.states,
                                    layout.lists, layout.stacked, layout.listed})
    hash.mix(count);
  hash.mix(static_cast<std::uint64_t>(layout.turns));
  hash.mix(static_cast<std::uint64_t>(layout.snapshots));
}

void mix(const TensorType& type, Hash128& hash) {
  hash.mix(static_cast<std::uint64_t>(type.dtype));
  for (const std::int64_t extent : type.shape.get()) hash.mix(static_cast<std::uint64_t>(extent));
  hash.mix(static_cast<std::uint64_t>(type.shape.get().rank()));
}

}  // namespace

TensorType type_of(const LazyTensor& x) { return {x.dtype(), x.node().interned_shape()}; }

TensorType stacked_type_of(const LazyTensor& x, std::int64_t rows) {
  Dims extents{rows};
  for (const std::int64_t extent : x.shape()) extents.push_back(extent);
  return {x.dtype(), InternedShape(Shape(extents))};
}

std::vector<std::uint32_t> Constants::add(std::span<const LazyTensor> captured) {
  std::vector<std::uint32_t> at;
  for (const LazyTensor& x : captured) {
    auto found = std::ranges::find(tensors_, x.node_id(), &LazyTensor::node_id);
    if (found == tensors_.end()) found = tensors_.insert(found, x);
    at.push_back(static_cast<std::uint32_t>(found - tensors_.begin()));
  }
  return at;
}

namespace {

/// Leaves out the slices, constants and lists that no part reads: with them goes what they are computed from.
/// Returns those inputs that stay.
std::vector<LazyTensor> without_unread(std::span<const LazyTensor> inputs, ControlLayout& layout,
                                       std::vector<ControlPart>& parts) {
  const ControlLayout all = layout;
  const std::uint32_t first_constant = all.carries + all.slices, first_state = first_constant + all.constants;
  std::vector<bool> is_read(all.parameters(), true);
  std::fill(is_read.begin() + all.carries, is_read.begin() + first_state, false);
  std::fill(is_read.begin() + all.first_list(), is_read.end(), false);
  for (const ControlPart& part : parts) {
    for (const std::uint32_t parameter : part.parameters) is_read[parameter] = true;
  }
  std::vector<std::uint32_t> now(is_read.size());
  std::vector<LazyTensor> kept;
  std::uint32_t parameters = 0;
  for (std::uint32_t p = 0; p < is_read.size(); ++p) {
    now[p] = parameters;
    const bool is_list = p >= all.first_list();
    if (is_read[p]) {
      ++parameters;
      const auto own = is_list ? inputs.subspan(all.list_begin(p - all.first_list()), all.tensors_of_a_list())
                               : inputs.subspan(p, 1);
      kept.insert(kept.end(), own.begin(), own.end());
    } else {
      --(is_list ? layout.lists : p < first_constant ? layout.slices : layout.constants);
    }
  }
  const auto selector = inputs.subspan(all.list_begin(all.lists));
  kept.insert(kept.end(), selector.begin(), selector.end());
  for (ControlPart& part : parts) {
    for (std::uint32_t& parameter : part.parameters) parameter = now[parameter];
  }
  return kept;
}

}  // namespace

std::vector<LazyTensor> control_results(std::string_view name, const ControlLayout& layout,
                                        std::span<const LazyTensor> inputs, std::vector<TensorType> results,
                                        std::span<const BodyPart> parts) {
  auto flow = std::make_shared<ControlFlow>();
  flow->layout = layout;
  std::vector<LazyTensor> numbers;
  for (const BodyPart& part : parts)
    flow->parts.push_back(part.body->part(part.results, part.parameters, numbers, flow->hash));
  std::vector<LazyTensor> all = without_unread(inputs, flow->layout, flow->parts);
  mix(flow->layout, flow->hash);
  for (LazyTensor& x : all) {
    flow->inputs.push_back(type_of(x));
    mix(flow->inputs.back(), flow->hash);
    x = stop_gradient(x);
  }
  for (const TensorType& type : results) mix(type, flow->hash);
  flow->results = std::move(results);
  for (const LazyTensor& number : numbers) {
    flow->numbers.push_back(compute_type(number.dtype()));
    all.push_back(number);
  }
  const Device device = inputs.empty() ? default_device() : inputs.front().device();
  std::vector<Node*> nodes;
  for (const LazyTensor& x : all) {
    if (!ops::is_scalar_leaf(x) && x.device() != device) {
      throw DeviceError(std::string(name) + ": tensors on " + device.to_string() + " and on " +
                        x.device().to_string() + "; move them to one device (to())");
    }
    nodes.push_back(&x.node());
  }
  const std::array<std::int64_t, 2> attributes{static_cast<std::int64_t>(flow->hash.lo),
                                               static_cast<std::int64_t>(flow->hash.hi)};
  const std::vector<TensorType> types = flow->results;
  std::vector<LazyTensor> out;
  out.emplace_back(Node::make_control(op_of(layout), types[0].shape, types[0].dtype, device, std::move(flow),
                                      nodes, attributes));
  Node* first = &out.front().node();
  for (std::size_t k = 1; k < types.size(); ++k) {
    const std::array<std::int64_t, 1> which{static_cast<std::int64_t>(k)};
    out.emplace_back(Node::make(kOtherResult, types[k].shape, types[k].dtype, device,
                                std::span<Node* const>(&first, 1), which));
  }
  return out;
}

}  // namespace caldera
