// OpDef: what a primitive is. Each is declared once, in ops/, as a constant of this type.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/hash.h"
#include "engine/graph/scalar_op.h"

namespace caldera {

class LazyTensor;
struct JvpContext;
struct VjpContext;

/// Says what comes of an element and an update that a scatter brings to it. `multiply` is what
/// scatter_reduce() computes products with, and has no derivatives of its own.
enum class Scatter : std::uint8_t { add, set, maximum, minimum, multiply };

/// The class of kernel an operation lowers to. The compiler knows these and no operation by name.
enum class OpClass : std::uint8_t {
  data,         // a leaf that holds a value
  scalar,       // a leaf that holds one number, hashed as "a scalar" (0, 1 and -1 included)
  elementwise,  // ScalarOp over inputs of the output's shape
  index,        // values that are functions of the coordinates: iota. attrs: stride per output dimension
  random,       // ScalarOp of a seed (input 0, scalar i64) and the linear index
  reduce,       // attrs: axes as a bit mask. The output keeps reduced axes with extent 1
  contract,     // matmul of equal batch extents: (batch..., M, K) x (batch..., K, N). The compiler makes such
                // of several products (engine/compile/rewrite/products.h)
  gather,       // inputs x, idx. attrs: axis; 1 if idx is aligned: of x's rank, with its extents but along
           // the axis, so that each place has indices of its own; 2 if, besides, none of these comes twice
  scatter,    // inputs base, idx, updates. attrs: axis; 1 or 2 if idx is aligned, as of a gather; Scatter
  sort,       // where the elements of each row are in order: x (batch..., n) gives (batch..., k), i32.
              // attrs: the place in order of the first of the k; whether descending. See SortStep
  reshape,    // same elements in row-major order
  permute,    // attrs: permutation
  slice,      // attrs: start per dimension, then step per dimension (may be negative)
  broadcast,  // to the output's shape; equal rank, extents 1 stretch
  // Inputs x, and numbers (scalar i64) that move what is taken. attrs: per dimension which input does (0:
  // none), then start and step as of a slice whose first element is at 0 where nothing moves it. A number is
  // clamped so that all is within x. In programs the numbers are no inputs, and the attribute is the slot
  // of the scalar (-1: none).
  dynamic_slice,
  // Inputs base, update, and numbers: base with update in place of the elements that a dynamic_slice by them
  // takes. attrs: per dimension which input (slot) moves it.
  dynamic_update,
  pad,  // inputs x, fill (scalar; without one, 0). attrs: low, high, interior per dimension, >= 0.
        // In programs a fourth list may follow: the slots of numbers that move the contents (-1: none)
  concatenate,  // attrs: axis
  identity,     // the value of input 0; vanishes (stop_gradient, trace boundaries). Other inputs are for
                // differentiation only. With ScalarOp::scalar input 0 is a number that is always attrs[0]
  barrier,      // the value of input 0, not a copy of it, for what must be computed apart from what was
                // computed of it before, and after the other inputs (checkpoint)
  placeholder,  // a leaf that never has a value: an argument of a function under vmap
  transfer,     // the value of its input, which is on another device. A leaf to the compiler: see
                // engine/runtime/capture/device_partition.h
  // Made by the compiler (engine/compile/rewrite/attention.h):
  attention,          // inputs q, transposed k, v, what the score reads
  attention_grad_q,   // inputs q, transposed k, v, go, highest, total, delta, what score and gradient read
  attention_grad_kv,  // the same; the gradient of k
  other_result,       // a further result of its input. attrs: which. Of attention: 1 highest, 2 total; of
                      // attention_grad_kv: 1 the gradient of v, 2 that of q; of control: those after the
                      // first
  // Of graphs again:
  linalg,  // LAPACK's routine for each matrix of a batch. Inputs: a (batch..., m, n), and for some of them
           // b (batch..., n, k) or a number. attrs: MatrixAttribute (engine/graph/matrix_routine.h). The
           // output is (batch...) and then extents of as many elements as the routine's results have
  // Runs programs of its own, which the node carries (engine/compile/program/control_flow.h): a loop or a
  // branch. Its value is the first result; the others are other_results of it.
  control,
  quantized,    // floats of quantised matrices, or products with them. attrs: QuantizedNode
                // (engine/graph/quantized_node.h)
  convolution,  // of images, and its two gradients. attrs: ConvolutionNode (engine/graph/convolution_node.h)
  call,  // no value: marks a part of the graph that is differentiated and mapped as a whole, by the rule
         // that the node carries (engine/graph/call_rule.h). Evaluation never meets one
};

/// Gradient rule: appends graph nodes that compute, from the cotangent of the output, the cotangents of the
/// inputs. Writes context.grads[i] for every i with context.needed[i].
using VjpRule = void (*)(VjpContext& context);

/// Tangent rule: writes context.tangent, the derivative of the output along the tangents of the inputs.
using JvpRule = void (*)(JvpContext& context);

struct OpDef {
  std::string_view name;
  OpClass kind;
  ScalarOp scalar = ScalarOp::load;  // elementwise, random: the function; reduce: that of two elements
  VjpRule vjp = nullptr;       // null with zero_gradient unset: differentiating it is an error that names it
  JvpRule jvp = nullptr;       // null for an element-wise operation with a vjp: that is used
  bool zero_gradient = false;  // the derivative is zero or undefined by nature (comparisons, floor, iota)
};

}  // namespace caldera
