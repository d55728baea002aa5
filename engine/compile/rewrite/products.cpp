#include "engine/compile/rewrite/products.h"

#include <algorithm>
#include <optional>

#include "engine/compile/program/limits.h"
#include "engine/compile/program/program_builder.h"

namespace caldera {
namespace {

using Id = std::uint32_t;

const OpDef kProducts{.name = "matmul", .kind = OpClass::contract};

class ProductSums {
 public:
  explicit ProductSums(const Program& program)
      : program_(program), uses_(count_uses(program)), user_(program.nodes.size(), kNoRoot), build_(program) {
    for (Id i = 0; i < program.nodes.size(); ++i) {
      if (uses_[i] == 0) continue;
      for (Id input : program.inputs_of(program.nodes[i])) user_[input] = i;
    }
    count_terms();
  }

  Program run() {
    for (Id i = 0; i < program_.nodes.size(); ++i) {
      if (uses_[i] == 0 || build_.is_leaf(i)) continue;
      if (is_sum(i) && !continues_into(i)) {
        if (const auto now = joined(i)) {
          build_.set(i, *now);
          continue;
        }
      }
      build_.set(i, build_.copy(i));
    }
    return build_.finish();
  }

 private:
  /// One term of a sum: scale * (A B), perhaps in other extents.
  struct Term {
    Id product = kNoRoot;
    Id scale = kNoRoot;  // scalar leaf
  };

  const Program::Node& node(Id i) const { return program_.nodes[i]; }
  bool is_sum(Id i) const {
    const Program::Node& n = node(i);
    return n.op->kind == OpClass::elementwise && n.op->scalar == ScalarOp::add && is_floating(n.dtype);
  }
  /// A sum whose only reader is a sum of the same extents. One with as many products as a contraction takes
  /// is computed where it stands: further products, as of a weight that many layers share, are added to it,
  /// and what they are made of does not wait for the last of them.
  bool continues_into(Id i) const {
    return uses_[i] == 1 && user_[i] != kNoRoot && is_sum(user_[i]) &&
           node(user_[i]).shape == node(i).shape && terms_[i] < kMaxSegments;
  }
  void count_terms() {
    terms_.assign(program_.nodes.size(), 0);
    for (Id i = 0; i < program_.nodes.size(); ++i) {
      if (uses_[i] == 0 || !is_sum(i)) continue;
      for (Id input : program_.inputs_of(node(i))) {
        if (is_sum(input) && continues_into(input))
          terms_[i] += terms_[input];
        else
          terms_[i] += term(input) ? 1 : 0;
      }
    }
  }

  /// The leaves of a tree of sums, from left to right. Iterative: sums of thousands of terms are legal.
  std::vector<Id> leaves(Id sum) const {
    std::vector<Id> out, stack{sum};
    while (!stack.empty()) {
      const Id i = stack.back();
      stack.pop_back();
      if (i != sum && !(is_sum(i) && continues_into(i))) {
        out.push_back(i);
        continue;
      }
      const auto inputs = program_.inputs_of(node(i));
      stack.push_back(inputs[1]);
      stack.push_back(inputs[0]);
    }
    return out;
  }

  std::optional<Term> term(Id i) const {
    Term t;
    while (uses_[i] == 1) {
      const Program::Node& n = node(i);
      const auto inputs = program_.inputs_of(n);
      if (n.op->kind == OpClass::contract && n.input_count == 2) {
        t.product = i;
        return t;
      }
      if (n.op->kind == OpClass::reshape) {
        i = inputs[0];
      } else if (n.op->kind == OpClass::elementwise && n.op->scalar == ScalarOp::mul && t.scale == kNoRoot) {
        const bool first = node(inputs[0]).op->kind == OpClass::scalar;
        if (!first && node(inputs[1]).op->kind != OpClass::scalar) return {};
        t.scale = first ? inputs[0] : inputs[1];
        i = first ? inputs[1] : inputs[0];
        if (node(t.scale).dtype != n.dtype) return {};
      } else {
        return {};
      }
    }
    return {};
  }

  std::optional<Id> joined(Id sum) {
    const Program::Node& n = node(sum);
    const std::vector<Id> all = leaves(sum);
    std::vector<Term> terms;
    std::vector<Id> others;
    for (Id leaf : all) {
      const auto t = term(leaf);
      const bool fits = t && node(leaf).shape == n.shape && terms.size() < kMaxSegments &&
                        (terms.empty() || (node(t->product).shape == node(terms[0].product).shape &&
                                           node(t->product).dtype == node(terms[0].product).dtype));
      if (fits)
        terms.push_back(*t);
      else
        others.push_back(leaf);
    }
    if (terms.size() < 2) return {};
    const Program::Node& first = node(terms[0].product);
    // The longest first: it is what a device's fast path starts with.
    std::stable_sort(terms.begin(), terms.end(),
                     [&](const Term& a, const Term& b) { return inner_extent(a) > inner_extent(b); });
    std::vector<Id> operands, scales;
    std::int64_t scaled = 0;
    for (std::size_t s = 0; s < terms.size(); ++s) {
      for (Id input : program_.inputs_of(node(terms[s].product))) operands.push_back(build_.at(input));
      if (terms[s].scale == kNoRoot) continue;
      scaled |= std::int64_t{1} << s;
      scales.push_back(build_.at(terms[s].scale));
    }
    operands.insert(operands.end(), scales.begin(), scales.end());
    const std::int64_t attributes[] = {static_cast<std::int64_t>(terms.size()), scaled};
    Id now = build_.make(kProducts, first.dtype, first.shape, attributes, operands, first.origin);
    if (first.shape != n.shape) {
      now = build_.make(compiled_ops::kReshape, n.dtype, n.shape, {}, {now}, first.origin);
    }
    for (Id leaf : others) {
      now = build_.make(*n.op, n.dtype, n.shape, {}, {now, build_.at(leaf)}, n.origin);
    }
    return now;
  }

  std::int64_t inner_extent(const Term& t) const {
    return node(program_.inputs_of(node(t.product))[0]).shape.back();
  }

  const Program& program_;
  std::vector<std::uint32_t> uses_;
  std::vector<Id> user_;    // a reader of each node; the reader where there is one
  std::vector<int> terms_;  // of a sum: the products that it would join
  ProgramBuilder build_;
};

}  // namespace

SegmentList segments_of(const Program::Node& contract) {
  if (contract.attributes.empty()) return {};
  return {static_cast<int>(contract.attributes[0]), contract.attributes[1]};
}

Program sum_products(const Program& program) { return ProductSums(program).run(); }

}  // namespace caldera
