#include "engine/graph/tracing/tracing.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "engine/base/error.h"

namespace caldera {
namespace {

thread_local int traces_here = 0;
thread_local NumberTrace* innermost = nullptr;
std::atomic<std::int64_t> next_serial{1};

enum : std::size_t { kBits, kWeak, kSerial, kArgument };

NodePtr make_number(DType dtype, const std::array<std::int64_t, 4>& attributes) {
  NodePtr node = Node::make(kArgumentNumber, Shape{}, dtype, Device::cpu(), {}, attributes);
  node->set_traced();
  return node;
}

}  // namespace

const OpDef kArgumentTensor{.name = "argument", .kind = OpClass::placeholder, .zero_gradient = true};
const OpDef kBodyArgument{.name = "argument", .kind = OpClass::placeholder};
const OpDef kArgumentNumber{.name = "scalar", .kind = OpClass::scalar, .zero_gradient = true};

Tracing::Tracing() { ++traces_here; }
Tracing::~Tracing() { --traces_here; }
int Tracing::depth() { return traces_here; }

NumberTrace::NumberTrace() : serial_(next_serial.fetch_add(1, std::memory_order_relaxed)), outer_(innermost) {
  innermost = this;
}
NumberTrace::~NumberTrace() { innermost = outer_; }

NodePtr NumberTrace::stand_in(const Node& number, std::uint32_t argument) const {
  const Attributes given = number.attributes();
  return make_number(number.dtype(), {given[kBits], given[kWeak], serial_, argument});
}

bool NumberTrace::owns(const Node& node) const { return node.attributes()[kSerial] == serial_; }
std::uint32_t NumberTrace::argument_of(const Node& node) {
  return static_cast<std::uint32_t>(node.attributes()[kArgument]);
}

std::vector<std::uint32_t> NumberTrace::read() const {
  std::vector<std::uint32_t> read = read_;
  std::sort(read.begin(), read.end());
  read.erase(std::unique(read.begin(), read.end()), read.end());
  return read;
}

void note_number_read(const Node& node) {
  if (!is_argument_number(node)) return;
  for (NumberTrace* trace = innermost; trace != nullptr; trace = trace->outer_) {
    if (!trace->owns(node)) continue;
    trace->read_.push_back(NumberTrace::argument_of(node));
    return;
  }
  throw ValueError(
      "the number is an argument of a compiled function, and has no meaning outside of it; return it as a "
      "result");
}

NodePtr converted_argument(const Node& node, DType dtype) {
  const FillValue value = value_of_number(node);
  const Attributes given = node.attributes();
  // Calls with a number that the type does not hold are no replays: the bits do not matter then.
  return make_number(dtype, {value.fits(dtype) ? value.bits(dtype) : 0, 0, given[kSerial], given[kArgument]});
}

std::string no_value_of_argument(const OpDef& op, const Shape& shape) {
  if (&op == &kArgumentTensor || &op == &kArgumentNumber) {
    return fmt::format(
        "eval: the value depends on an argument (shape {}) of a compiled function, which is traced once, "
        "without values, and replayed after that; evaluate outside of the compiled function, and use where() "
        "instead of control flow on values",
        shape.to_string());
  }
  if (&op == &kBodyArgument) {
    return fmt::format(
        "eval: the value depends on an argument (shape {}) of the body of a loop or branch, which is called "
        "once, without values; evaluate outside of it, and use cond(), while_loop() or where() instead of "
        "control flow on values",
        shape.to_string());
  }
  return fmt::format(
      "eval: the value depends on an argument (shape {}) of a function under vmap, which is called once for "
      "all examples and has no values to compute with; evaluate outside of the mapped function, and use "
      "where() instead of control flow on values",
      shape.to_string());
}

FillValue value_of_number(const Node& node) {
  const std::int64_t bits = node.attributes()[kBits];
  return is_floating(node.dtype()) ? FillValue(std::bit_cast<double>(bits)) : FillValue(bits);
}

}  // namespace caldera
