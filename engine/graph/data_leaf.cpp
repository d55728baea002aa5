#include "engine/graph/data_leaf.h"

#include <atomic>
#include <utility>

namespace caldera {
namespace {

constinit std::atomic<HostLeafMaker> host_leaf_maker = nullptr;

}  // namespace

const OpDef kDataOp{.name = "data", .kind = OpClass::data, .zero_gradient = true};

const OpDef kComputedOp{.name = "data", .kind = OpClass::data, .zero_gradient = true};

const OpDef kCompiledOp{.name = "result of a compiled function", .kind = OpClass::data};

LazyTensor data_leaf(const Shape& shape, DType dtype, Device device, Value value, const OpDef& op) {
  LazyTensor leaf(Node::make(op, shape, dtype, device));
  leaf.node().set_value(std::move(value));
  return leaf;
}

LazyTensor host_leaf(const void* data, std::size_t bytes, DType dtype, const Shape& shape, Device device) {
  const HostLeafMaker make = host_leaf_maker.load();
  if (make == nullptr) throw Error("host_leaf: this program evaluates nothing, and so has no devices linked");
  return make(data, bytes, dtype, shape, device);
}

bool set_host_leaf_maker(HostLeafMaker maker) {
  host_leaf_maker.store(maker);
  return true;
}

}  // namespace caldera
