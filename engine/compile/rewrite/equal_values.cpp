#include "engine/compile/rewrite/equal_values.h"

#include <algorithm>

namespace caldera {

bool EqualValues::operator()(std::uint32_t a, std::uint32_t b) {
  constexpr int kMostComparisons = 1000;
  left_ = kMostComparisons;
  return compare(a, b, 0);
}

bool EqualValues::is_alike(const Program::Node& a, const Program::Node& b) const {
  return a.op->kind == b.op->kind && a.op->scalar == b.op->scalar && a.dtype == b.dtype &&
         a.control == b.control && a.input_count == b.input_count && a.input_count > 0 &&
         a.shape == b.shape && std::ranges::equal(a.attributes, b.attributes);
}

bool EqualValues::compare(std::uint32_t a, std::uint32_t b, int depth) {
  constexpr int kDeepest = 200;
  while (program_.nodes[a].op->kind == OpClass::barrier) a = program_.inputs_of(a)[0];
  while (program_.nodes[b].op->kind == OpClass::barrier) b = program_.inputs_of(b)[0];
  if (a == b) return true;
  const std::pair<std::uint32_t, std::uint32_t> pair(std::min(a, b), std::max(a, b));
  if (const auto found = known_.find(pair); found != known_.end()) return found->second;
  // What differs mostly differs in a leaf, a weight, which is the second operand of a product.
  if (depth > kDeepest || --left_ < 0) return false;
  const auto of_a = program_.inputs_of(a), of_b = program_.inputs_of(b);
  bool equal = is_alike(program_.nodes[a], program_.nodes[b]);
  for (std::size_t k = of_a.size(); equal && k-- > 0;) equal = compare(of_a[k], of_b[k], depth + 1);
  if (left_ >= 0) known_.emplace(pair, equal);
  return equal;
}

}  // namespace caldera
