#include "tests/support/plans/random_graph.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/device/backend.h"

namespace caldera::testing {
namespace {

constexpr double kMaxValue = 4;  // larger values are scaled down, so that nothing blows up

double largest(const Dense& x) {
  double top = 0;
  for (double value : x.v) top = std::max(top, std::abs(value));
  return top;
}

}  // namespace

RandomGraph::RandomGraph(std::uint32_t seed, DType real) : random_(seed), real_(real) {
  using Step = void (RandomGraph::*)();
  constexpr Step kSteps[] = {
      &RandomGraph::unary,         &RandomGraph::unary,       &RandomGraph::binary,
      &RandomGraph::binary,        &RandomGraph::binary,      &RandomGraph::scalar,
      &RandomGraph::constant,      &RandomGraph::integers,    &RandomGraph::where,
      &RandomGraph::reduce,        &RandomGraph::reduce,      &RandomGraph::matmul,
      &RandomGraph::reshape,       &RandomGraph::permute,     &RandomGraph::slice,
      &RandomGraph::broadcast,     &RandomGraph::take,        &RandomGraph::scatter_add,
      &RandomGraph::pad,           &RandomGraph::concatenate, &RandomGraph::normalisation,
      &RandomGraph::normalisation, &RandomGraph::low_rank,    &RandomGraph::attention,
      &RandomGraph::rotary,
  };
  real_leaf(random_shape());
  for (int steps = 4 + below(24); steps > 0; --steps)
    (this->*kSteps[below(static_cast<int>(std::size(kSteps)))])();
  outputs_.push_back(static_cast<int>(nodes_.size()) - 1);
  for (int more = below(4); more > 0; --more) outputs_.push_back(below(static_cast<int>(nodes_.size())));
}

RandomGraph::Tensors RandomGraph::build(Device device) const {
  return build([device](int) { return device; });
}

RandomGraph::Tensors RandomGraph::build(const std::function<Device(int)>& place) const {
  const Tensors nodes = build_nodes(place);
  Tensors out;
  for (int output : outputs_) out.push_back(nodes[static_cast<std::size_t>(output)]);
  return out;
}

RandomGraph::Tensors RandomGraph::build_nodes(const std::function<Device(int)>& place) const {
  Scope scope{Device::cpu(), {}};
  for (const Node& node : nodes_) {
    scope.device = place(static_cast<int>(scope.tensors.size()));
    Scope there{scope.device, {}};
    there.tensors.reserve(scope.tensors.size());
    for (const LazyTensor& earlier : scope.tensors) there.tensors.push_back(to(earlier, scope.device));
    scope.tensors.push_back(node.build(there));
    if (scope.tensors.back().shape() != node.value.shape) {
      throw ShapeError(fmt::format("'{}' has shape {}, should have {}", node.text,
                                   scope.tensors.back().shape().to_string(), node.value.shape.to_string()));
    }
  }
  return std::move(scope.tensors);
}

std::string RandomGraph::to_string() const {
  std::string text;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    text += fmt::format("  %{} = {}  {}\n", i, nodes_[i].text, nodes_[i].value.shape.to_string());
  }
  return text + fmt::format("  outputs {}\n", outputs_);
}

// ---- choices

Shape RandomGraph::random_shape() {
  constexpr std::int64_t kExtents[] = {1, 1, 2, 3, 4, 5, 7, 8};
  if (chance(6)) return chance(50) ? Shape{1025} : Shape{33, 65};
  Shape shape;
  for (int rank = below(5); rank > 0; --rank) shape.push_back(kExtents[below(8)]);
  if (chance(3) && !shape.empty()) shape[below(shape.rank())] = 0;
  return shape;
}

Shape RandomGraph::partner_shape(const Shape& shape) {
  Shape out = shape;
  for (int d = 0; d < out.rank(); ++d) {
    if (chance(30)) out[d] = 1;
  }
  for (int drop = chance(30) ? below(out.rank() + 1) : 0; drop > 0; --drop) out.erase(0);
  if (chance(15) && out.rank() < 5 && shape.numel() <= kMaxElements / 3) {
    while (out.rank() < shape.rank()) out.insert(0, 1);
    out.insert(0, 3);
  }
  return out;
}

int RandomGraph::real_node(int min_rank) {
  const int count = static_cast<int>(nodes_.size());
  for (int tries = 0; tries < 8; ++tries) {
    const int i = chance(60) ? count - 1 - below(std::min(count, 4)) : below(count);
    if (!node(i).is_integer && !node(i).is_large && shape(i).rank() >= min_rank) return i;
  }
  Shape leaf = random_shape();
  while (leaf.rank() < min_rank) leaf.push_back(3);
  return real_leaf(leaf);
}

int RandomGraph::integer_node() {
  for (int tries = 0; tries < 6; ++tries) {
    const int i = below(static_cast<int>(nodes_.size()));
    if (node(i).is_integer) return i;
  }
  if (chance(50)) return integer_leaf(random_shape(), -9, 9);
  Shape shape = random_shape();
  if (shape.empty()) shape.push_back(6);
  const int axis = below(shape.rank());
  Dense values(shape);
  for_each_point(shape, [&](const Dims& p) { values[p] = static_cast<double>(p[axis]); });
  return add(
      fmt::format("iota axis {}", axis), values,
      [=](const Scope& s) { return iota(shape, axis, DType::i32, s.device); }, true);
}

int RandomGraph::broadcast_partner(int a) {
  for (int tries = 0; tries < 6; ++tries) {
    const int b = below(static_cast<int>(nodes_.size()));
    if (node(b).is_integer != node(a).is_integer || node(b).is_large) continue;
    try {
      if (broadcast_shapes(shape(a), shape(b), "").numel() <= kMaxElements) return b;
    } catch (const ShapeError&) {
      continue;
    }
  }
  const Shape partner = partner_shape(shape(a));
  return node(a).is_integer ? integer_leaf(partner, -9, 9) : real_leaf(partner);
}

std::vector<int> RandomGraph::random_axes(const Shape& shape) {
  std::vector<int> axes;
  for (int d = 0; d < shape.rank(); ++d) {
    if (chance(50)) axes.push_back(d);
  }
  return axes;
}

Shape RandomGraph::random_reshape(const Shape& shape) {
  Shape out = shape;
  for (int edits = 1 + below(3); edits > 0; --edits) {
    const int at = out.empty() ? 0 : below(out.rank());
    switch (below(4)) {
      case 0:
        if (out.rank() < 6) out.insert(at, 1);
        break;
      case 1:
        if (out.rank() >= 2 && at + 1 < out.rank()) {  // merge neighbours
          out[at] *= out[at + 1];
          out.erase(at + 1);
        }
        break;
      case 2:
        for (std::int64_t part : {2, 3, 5}) {  // split
          if (out.empty() || out.rank() >= 6 || out[at] < 2 || out[at] % part != 0) continue;
          out[at] /= part;
          out.insert(chance(50) ? at : at + 1, part);
          break;
        }
        break;
      default:
        if (chance(30)) out = Shape{shape.numel()};
    }
  }
  return out;
}

// ---- nodes

int RandomGraph::add(std::string text, Dense value, Builder build, bool is_integer) {
  nodes_.push_back({std::move(text), is_integer, std::move(value), std::move(build)});
  return static_cast<int>(nodes_.size()) - 1;
}

int RandomGraph::add_real(std::string text, Dense value, Builder build) {
  const int raw = add(std::move(text), std::move(value), std::move(build));
  const double top = largest(node(raw).value);
  if (top <= kMaxValue) return raw;
  nodes_.back().is_large = true;
  const double scale = std::exp2(-std::ceil(std::log2(top / kMaxValue)));
  return add(fmt::format("%{} * {}", raw, scale),
             dense::map(node(raw).value, [&](double x) { return x * scale; }),
             [=](const Scope& s) { return s[raw] * scale; });
}

int RandomGraph::real_leaf(const Shape& shape) {
  Dense values(shape);
  std::uniform_real_distribution<float> uniform(-2, 2);  // floats, so that both dtypes hold them exactly
  for (double& value : values.v) value = uniform(random_);
  if (chance(25)) return half_leaf(std::move(values));
  return add("leaf", values, [=, real = real_](const Scope& s) {
    if (real == DType::f64) return LazyTensor::from_vector(values.v, shape, s.device);
    return LazyTensor::from_vector(std::vector<float>(values.v.begin(), values.v.end()), shape, s.device);
  });
}

/// Numbers that lie in memory as bf16: whatever reads them widens them.
int RandomGraph::half_leaf(Dense values) {
  std::vector<BFloat16> halves;
  halves.reserve(values.v.size());
  for (double& value : values.v) {
    value = std::round(value * 64) / 64;  // exact: at most 8 bits
    halves.push_back(to_bfloat16(static_cast<float>(value)));
  }
  return add("bf16 leaf", values, [=, shape = values.shape, real = real_](const Scope& s) {
    if (!backend(s.device).supports(DType::bf16)) {
      const std::vector<float> wide(values.v.begin(), values.v.end());
      return astype(LazyTensor::from_vector(wide, shape, s.device), real);
    }
    return astype(LazyTensor::from_vector(halves, shape, s.device), real);
  });
}

int RandomGraph::integer_leaf(const Shape& shape, int low, int high) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(shape.numel()));
  for (std::int32_t& value : values) value = low + below(high - low + 1);
  Dense reference(shape);
  reference.v.assign(values.begin(), values.end());
  return add(
      "integer leaf", reference,
      [=](const Scope& s) { return LazyTensor::from_vector(values, shape, s.device); }, true);
}

::testing::AssertionResult agrees(const LazyTensor& got, const Dense& wanted, double allowed) {
  std::vector<double> values;
  if (got.dtype() == DType::f64) {
    values = got.to_vector<double>();
  } else if (got.dtype() == DType::f32) {
    const auto v = got.to_vector<float>();
    values.assign(v.begin(), v.end());
  } else {
    const auto v = got.to_vector<std::int32_t>();
    values.assign(v.begin(), v.end());
    allowed = 0;
  }
  double largest = 1;
  for (double value : wanted.v) largest = std::max(largest, std::abs(value));
  allowed *= largest;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(std::abs(values[i] - wanted.v[i]) <= allowed)) {
      return ::testing::AssertionFailure()
             << "element " << i << " is " << values[i] << ", should be " << wanted.v[i];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace caldera::testing
