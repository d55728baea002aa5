#include "engine/compile/rewrite/products.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/compile/program/limits.h"
#include "engine/compile/program/program_builder.h"

namespace caldera {
namespace {

using Id = std::uint32_t;

/// One term of a sum: scale * (A B), perhaps in other extents.
struct Term {
  Id product = kNoRoot;
  Id scale = kNoRoot;  // scalar leaf
  /// Elements of its operands that are computed: they have to be there until all segments are.
  std::int64_t computed = 0;
};

/// Finds sums of products and nothing else, as ((P1 + P2) + P3) + P4: a contraction adds its segments up in
/// this order and from nothing, so each addition stays what it is. A term that is no product ends such a sum:
/// what is added before it has to be added before it.
class ProductSums {
 public:
  explicit ProductSums(const Program& program)
      : program_(program), uses_(count_uses(program)), build_(program) {
    find_sums();
  }

  bool found() const { return !sums_.empty(); }

  Program run() {
    for (Id i = 0; i < program_.nodes.size(); ++i) {
      if (uses_[i] == 0 || build_.is_leaf(i)) continue;
      const auto sum = sums_.find(i);
      build_.set(i, sum == sums_.end() ? build_.copy(i) : joined(i, sum->second));
    }
    return build_.finish();
  }

 private:
  using Terms = std::vector<Term>;

  const Program::Node& node(Id i) const { return program_.nodes[i]; }
  bool is_sum(Id i) const {
    const Program::Node& n = node(i);
    return n.op->kind == OpClass::elementwise && n.op->scalar == ScalarOp::add && is_floating(n.dtype);
  }

  /// Fills `sums_` with the terms of every sum of products that is the whole of one.
  void find_sums() {
    for (Id i = 0; i < program_.nodes.size(); ++i) {
      if (uses_[i] == 0 || !is_sum(i)) continue;
      const auto inputs = program_.inputs_of(node(i));
      for (std::size_t k : {0U, 1U}) {
        Terms terms = terms_so_far(inputs[k], i);
        const auto last = term(inputs[1 - k]);
        if (terms.empty() || terms.size() == kMaxSegments || !last ||
            !fits(*last, terms[0], inputs[1 - k], i))
          continue;
        terms.push_back(*last);
        if (kept_beside_longest(terms) > kMaxKeptBySegments) continue;
        sums_.erase(inputs[k]);
        sums_.emplace(i, std::move(terms));
        break;
      }
    }
  }
  /// The terms of `i` where it is a product or a sum of products that nothing but the sum `into` reads.
  Terms terms_so_far(Id i, Id into) const {
    if (node(i).shape != node(into).shape) return {};
    if (const auto sum = sums_.find(i); sum != sums_.end()) return uses_[i] == 1 ? sum->second : Terms{};
    const auto one = term(i);
    return one ? Terms{*one} : Terms{};
  }
  /// Whether the term `t`, which is node `leaf`, can be a segment beside the term `first` of the sum.
  bool fits(const Term& t, const Term& first, Id leaf, Id sum) const {
    return t.product != first.product && node(leaf).shape == node(sum).shape &&
           node(t.product).shape == node(first.product).shape &&
           node(t.product).dtype == node(first.product).dtype;
  }

  /// Elements of the computed operands of all terms but the one that has the most.
  static std::int64_t kept_beside_longest(const Terms& terms) {
    std::int64_t all = 0, most = 0;
    for (const Term& t : terms) {
      all += t.computed;
      most = std::max(most, t.computed);
    }
    return all - most;
  }
  std::int64_t computed_elements(Id product) const {
    std::int64_t elements = 0;
    for (Id input : program_.inputs_of(node(product))) {
      Id of = input;
      while (node(of).op->kind == OpClass::permute || node(of).op->kind == OpClass::reshape)
        of = program_.inputs_of(node(of))[0];
      if (!build_.is_leaf(of)) elements += node(input).shape.numel();
    }
    return elements;
  }

  std::optional<Term> term(Id i) const {
    Term t;
    while (uses_[i] == 1) {
      const Program::Node& n = node(i);
      const auto inputs = program_.inputs_of(n);
      if (n.op->kind == OpClass::contract && n.input_count == 2) {
        t.product = i;
        t.computed = computed_elements(i);
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

  Id joined(Id sum, Terms terms) {
    const Program::Node& n = node(sum);
    const Program::Node& first = node(terms[0].product);
    // a + b is b + a, so the longer of the first two may begin: it is what a device's fast path starts with.
    if (inner_extent(terms[1]) > inner_extent(terms[0])) std::swap(terms[0], terms[1]);
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
    const Id now =
        build_.make(compiled_ops::kProduct, first.dtype, first.shape, attributes, operands, first.origin);
    if (first.shape == n.shape) return now;
    return build_.make(compiled_ops::kReshape, n.dtype, n.shape, {}, {now}, first.origin);
  }

  std::int64_t inner_extent(const Term& t) const {
    return node(program_.inputs_of(node(t.product))[0]).shape.back();
  }

  const Program& program_;
  std::vector<std::uint32_t> uses_;
  std::unordered_map<Id, Terms> sums_;
  ProgramBuilder build_;
};

}  // namespace

SegmentList segments_of(const Program::Node& contract) {
  if (contract.attributes.empty()) return {};
  return {static_cast<int>(contract.attributes[0]), contract.attributes[1]};
}

Program sum_products(Program program) {
  ProductSums sums(program);
  if (!sums.found()) return program;
  return sums.run();
}

}  // namespace caldera
