#include "engine/compile/rewrite/turned_products.h"

#include <cstddef>
#include <vector>

#include "engine/compile/program/program_builder.h"
#include "engine/compile/rewrite/attention_patterns.h"
#include "engine/compile/rewrite/products.h"

namespace caldera {
namespace {

using Id = std::uint32_t;

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
    const Patterns match(program);
    std::vector<bool> is_gone(program.nodes.size(), false);
    for (Id i = 0; i < program.nodes.size(); ++i) {
      if (uses[i] == 0 || !match.is(i, OpClass::permute)) continue;
      const Id product = match.in(i, 0);
      if (uses[product] != 1 || !match.is(product, OpClass::contract) || !match.is_transpose(i, product))
        continue;
      product_of_[i] = product;
      is_gone[product] = found_ = true;
    }
    for (Id i = 0; found_ && i < program.nodes.size(); ++i) {
      if (uses[i] == 0 || build_.is_leaf(i) || is_gone[i]) continue;
      build_.set(i, product_of_[i] != kNoRoot ? turned(i, product_of_[i])
                    : names_nodes(node(i))    ? renamed(i)
                                              : build_.copy(i));
    }
  }

  bool found() const { return found_; }
  Program finish() { return build_.finish(); }

 private:
  const Program::Node& node(Id i) const { return program_.nodes[i]; }

  Id renamed(Id attention) {
    const Program::Node& n = node(attention);
    std::vector<std::int64_t> names;
    std::vector<Id> inputs;
    for (std::int64_t named : n.attributes) names.push_back(build_.at(static_cast<Id>(named)));
    for (Id input : program_.inputs_of(n)) inputs.push_back(build_.at(input));
    return build_.make(*n.op, n.dtype, n.shape, names, inputs, n.origin);
  }

  Id transpose_of(Id old) { return build_.transpose(build_.at(old), node(old).origin); }

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
    return build_.make(compiled_ops::kProduct, n.dtype, node(transpose).shape, n.attributes, operands,
                       n.origin);
  }

  const Program& program_;
  std::vector<Id> product_of_;  // of a transpose that is replaced
  bool found_ = false;
  ProgramBuilder build_;
};

}  // namespace

Program turn_products(Program program) {
  TurnedProducts turned(program);
  if (!turned.found()) return program;
  return turned.finish();
}

}  // namespace caldera
