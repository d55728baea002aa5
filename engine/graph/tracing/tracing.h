// Tracing: the time during which a transform runs the user's function, and what stands for its arguments
// where they have no values. Internal to transforms and operations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/fill_value.h"
#include "engine/graph/node.h"

namespace caldera {

/// While one lives, a transform runs the user's function on this thread: what is made from its arguments
/// (Node::is_traced) is part of a graph that is rewritten or kept.
class Tracing {
 public:
  Tracing();
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  /// Returns how many live on this thread.
  static int depth();
};

/// The operations of what stands for the arguments of a compiled function: of tensors, and of numbers. Those
/// of a number have the attributes of any scalar leaf, then the trace and the argument.
extern const OpDef kArgumentTensor;
extern const OpDef kArgumentNumber;

/// That of what stands for an argument of the body of a loop or branch (engine/control).
extern const OpDef kBodyArgument;

inline bool is_argument_number(const Node& node) { return &node.op() == &kArgumentNumber; }

/// The trace of a function of which some arguments are numbers. They are numbers within the function too, of
/// the values that they have at this call; but who looks at such a value, as few operations do, makes the
/// trace one for this value alone.
class NumberTrace {
 public:
  NumberTrace();
  ~NumberTrace();
  NumberTrace(const NumberTrace&) = delete;
  NumberTrace& operator=(const NumberTrace&) = delete;

  /// Makes what stands for argument `argument`, which is `number`.
  NodePtr stand_in(const Node& number, std::uint32_t argument) const;
  /// Whether `node` stands for an argument of this trace: see argument_of.
  bool owns(const Node& node) const;
  static std::uint32_t argument_of(const Node& node);
  /// The arguments whose values were looked at, in order.
  std::vector<std::uint32_t> read() const;

 private:
  friend void note_number_read(const Node& node);

  std::int64_t serial_;
  NumberTrace* outer_;
  std::vector<std::uint32_t> read_;
};

/// Whoever needs the value of a number while a graph is built calls it first: does nothing but for one that
/// stands for an argument. Throws ValueError if that has a meaning no longer, or not on this thread.
void note_number_read(const Node& node);
/// Returns what stands for the same argument in another type.
NodePtr converted_argument(const Node& node, DType dtype);

/// Returns what to say of an evaluation that needs the value of an argument, which has none: its operation,
/// which is a placeholder or kArgumentNumber, and its shape.
std::string no_value_of_argument(const OpDef& op, const Shape& shape);

/// The number that a scalar leaf is, whoever may look at it.
FillValue value_of_number(const Node& node);

}  // namespace caldera
