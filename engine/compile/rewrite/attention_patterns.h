// The forms of attention that a program may have: softmax, its score, and what is between two nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "engine/compile/program/program.h"

namespace caldera {

/// Attributes of an attention node: positions in the program of the raw product and of the score; then, of
/// the forward pass, of the probabilities; of the gradients, of the cotangents of the score and of the raw
/// product.
enum AttentionAttribute : std::size_t { kRaw, kScore, kScoreGrad, kRawGrad };

/// Whether the attributes of a node are positions in the program: a pass that gives nodes other numbers maps
/// them.
inline bool names_nodes(const Program::Node& n) {
  return n.op->kind == OpClass::attention || n.op->kind == OpClass::attention_grad_q ||
         n.op->kind == OpClass::attention_grad_kv;
}

/// Element-wise operations of one shape between some given nodes and a result.
struct Expression {
  std::vector<std::uint32_t> operations;  // ascending
  std::vector<std::uint32_t> reads;       // what else they read, but numbers
};

/// softmax over the last axis, and the product that its argument is made of.
struct Softmax {
  std::uint32_t probabilities = kNoRoot, exponentials = kNoRoot, total = kNoRoot, score = kNoRoot,
                raw = kNoRoot;
  Expression expression;  // the score from the raw product
};

/// Reads a program for the patterns.
class Patterns {
 public:
  using Id = std::uint32_t;
  explicit Patterns(const Program& program) : program_(program) {}

  const Program::Node& node(Id i) const { return program_.nodes[i]; }
  Id in(Id i, std::size_t k) const { return program_.inputs_of(i)[k]; }
  bool is(Id i, ScalarOp op) const {
    return node(i).op->kind == OpClass::elementwise && node(i).op->scalar == op;
  }
  bool is(Id i, OpClass kind) const { return node(i).op->kind == kind; }
  bool is_product(Id i) const { return is(i, OpClass::contract) && node(i).input_count == 2; }
  bool is_row_reduction(Id i, ScalarOp op) const;
  /// Returns what a broadcast repeats, through reshapes that come back to its extents; kNoRoot if it is none
  /// such.
  Id behind_broadcast(Id i) const;
  /// Returns what is converted between f32 and a 16-bit type to become `i`: attention keeps such values in
  /// f32.
  Id behind_casts(Id i) const;
  bool is_f32(Id i) const { return compute_type(node(i).dtype) == DType::f32; }
  /// Whether a is b with its last two axes exchanged, or the other way about.
  bool transposes(Id a, Id b) const { return is_transpose(a, b) || is_transpose(b, a); }
  bool is_transpose(Id a, Id b) const;

  /// Returns what is between `result` and the given nodes. Nothing where it is no element-wise function of
  /// them.
  std::optional<Expression> between(Id result, std::initializer_list<Id> given) const;
  /// The softmax whose probabilities node `p` is, if it is one.
  std::optional<Softmax> softmax(Id p) const;

 private:
  /// Goes down from the score to the one product of its shape.
  std::optional<Softmax> with_raw(Softmax s) const;

  const Program& program_;
};

}  // namespace caldera
