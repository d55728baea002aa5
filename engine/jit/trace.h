// Trace: a function as it was built for arguments of one signature: a program, and what is bound to it in
// which order. Internal to compiled functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/base/hash.h"
#include "engine/compile/program/program.h"
#include "engine/graph/node.h"
#include "engine/jit/call_origins.h"
#include "engine/jit/signature.h"
#include "engine/tensor/device.h"

namespace caldera {

/// Constant. `nodes` owns what the program and the pointers name.
struct Trace {
  /// A tensor that the plan reads: an argument, or what was captured.
  struct Input {
    std::int32_t argument = -1;
    Node* captured = nullptr;  // it has a value, unless its evaluation fails while it is pending
  };
  /// A number that the plan takes: an argument in some type, or one that is always the same.
  struct Number {
    std::int32_t argument = -1;
    DType dtype = DType::f32;
    std::uint64_t bits = 0;
  };
  enum class From : std::uint8_t { plan, argument, number, captured };
  struct Result {
    From from = From::plan;
    std::uint32_t index = 0;   // of the plan's outputs, or of the arguments
    DType dtype = DType::f32;  // of a number
    NodePtr captured;          // a tensor with a value, or a number
  };
  /// An argument that is a number, and was looked at: the trace is for this value alone.
  struct FixedNumber {
    std::uint32_t argument = 0;
    std::int64_t bits = 0;  // of its attribute
  };

  explicit Trace(Signature of) : signature(std::move(of)) {}

  Signature signature;
  std::vector<FixedNumber> fixed;
  std::vector<Result> results;
  /// The device of what is computed. Without outputs there is no plan.
  Device device;
  std::uint64_t opening = 0;  // of the device
  Hash128 structure;
  Program program;
  std::vector<NodePtr> nodes;
  std::vector<Input> inputs;
  std::vector<Number> numbers;       // arguments of the plan, in order, but for the plan's own constants
  std::vector<const Node*> outputs;  // of the plan; those that no result is are computed on the way
  std::uint32_t asked = 0;           // of the outputs, the first ones, which are results
  OriginGroups origins;              // of those
};

/// Calls the function, on stand-ins for the arguments, none of which is lazy. Null if it captured what an
/// enclosing transform traces: then it is to be called as it is.
std::shared_ptr<const Trace> record_trace(const VectorFunction& function,
                                          std::span<const LazyTensor> arguments);

}  // namespace caldera
