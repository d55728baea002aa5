#include "engine/compile/rewrite/turned_products.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/compile/program/program_builder.h"
#include "engine/compile/rewrite/products.h"

namespace caldera {
namespace {

using Id = std::uint32_t;

const OpDef kTranspose{.name = "permute_dims", .kind = OpClass::permute};
const OpDef kTurned{.name = "matmul", .kind = OpClass::contract};

/// The axes of a tensor whose last two are exchanged.
std::vector<std::int64_t> exchanged_axes(int rank) {
  std::vector<std::int64_t> axes(static_cast<std::size_t>(rank));
  for (std::size_t d = 0; d < axes.size(); ++d) axes[d] = static_cast<std::int64_t>(d);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return axes;
}

/// Whether the attributes of a node are nodes: those that describe scores of attention.
bool names_nodes(const Program::Node& n) {
  return n.op->kind == OpClass::attention || n.op->kind == OpClass::attention_grad_q ||
         n.op->kind == OpClass::attention_grad_kv;
}

/// Counts uses, with those of what attention describes its scores by.
std::vector<std::uint32_t> count_all_uses(const Program& program) {
  std::vector<std::uint32_t> uses(program.nodes.size(), 0);
  for (Id output : program.outputs) ++uses[output];
  for (Id i = static_cast<Id>(program.nodes.size()); i-- > 0;) {
    const Program::Node& n = program.nodes[i];
    if (uses[i] == 0) continue;
    for (Id input : program.inputs_of(n)) ++uses[input];
    if (!names_nodes(n)) continue;
    for (std::int64_t named : n.attributes) ++uses[static_cast<std::size_t>(named)];
  }
  return uses;
}

class TurnedProducts {
 public:
  explicit TurnedProducts(const Program& program)
      : program_(program), product_of_(program.nodes.size(), kNoRoot), build_(program) {
    const std::vector<std::uint32_t> uses = count_all_uses(program);
    for (Id i = 0; i < program.nodes.size(); ++i) {
      if (uses[i] == 0 || !is_transpose(i)) continue;
      const Id product = program_.inputs_of(node(i))[0];
      if (uses[product] != 1 || node(product).op->kind != OpClass::contract) continue;
      product_of_[i] = product;
      gone_.push_back(product);
    }
    std::ranges::sort(gone_);
    for (Id i = 0; found() && i < program.nodes.size(); ++i) {
      if (uses[i] == 0 || build_.is_leaf(i) || std::ranges::binary_search(gone_, i)) continue;
      build_.set(i, product_of_[i] != kNoRoot ? turned(i, product_of_[i])
                    : names_nodes(node(i))    ? renamed(i)
                                              : build_.copy(i));
    }
  }

  bool found() const { return !gone_.empty(); }
  Program finish() { return build_.finish(); }

 private:
  const Program::Node& node(Id i) const { return program_.nodes[i]; }

  bool is_transpose(Id i) const {
    const Program::Node& n = node(i);
    return n.op->kind == OpClass::permute && n.shape.rank() >= 2 &&
           std::ranges::equal(n.attributes, exchanged_axes(n.shape.rank()));
  }
  Id renamed(Id attention) {
    const Program::Node& n = node(attention);
    std::vector<std::int64_t> names;
    std::vector<Id> inputs;
    for (std::int64_t named : n.attributes) names.push_back(build_.at(static_cast<Id>(named)));
    for (Id input : program_.inputs_of(n)) inputs.push_back(build_.at(input));
    return build_.make(*n.op, n.dtype, n.shape, names, inputs, n.origin);
  }

  Id transpose_of(Id old) {
    const Program::Node& n = node(old);
    const int rank = n.shape.rank();
    Shape shape = n.shape;
    std::swap(shape[rank - 1], shape[rank - 2]);
    const Id operand = build_.at(old);
    return build_.make(kTranspose, n.dtype, shape, exchanged_axes(rank), std::vector<Id>{operand}, n.origin);
  }

  Id turned(Id transpose, Id product) {
    const Program::Node& n = node(product);
    const auto inputs = program_.inputs_of(n);
    const auto segments = static_cast<std::size_t>(segments_of(n).count);
    std::vector<Id> operands;
    for (std::size_t s = 0; s < segments; ++s) {
      operands.push_back(transpose_of(inputs[2 * s + 1]));
      operands.push_back(transpose_of(inputs[2 * s]));
    }
    for (std::size_t k = 2 * segments; k < inputs.size(); ++k) operands.push_back(build_.at(inputs[k]));
    return build_.make(kTurned, n.dtype, node(transpose).shape, n.attributes, operands, n.origin);
  }

  const Program& program_;
  std::vector<Id> product_of_;  // of a transpose that is replaced
  std::vector<Id> gone_;        // products that are made turned, ascending
  ProgramBuilder build_;
};

}  // namespace

Program turn_products(Program program) {
  TurnedProducts turned(program);
  if (!turned.found()) return program;
  return turned.finish();
}

}  // namespace caldera
