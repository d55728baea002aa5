#include "engine/compile/rewrite/attention_patterns.h"

#include <algorithm>

#include "engine/compile/program/limits.h"

namespace caldera {

bool Patterns::is_row_reduction(Id i, ScalarOp op) const {
  if (i == kNoRoot) return false;
  const Program::Node& n = node(i);
  return n.op->kind == OpClass::reduce && n.op->scalar == op &&
         n.attributes[0] == std::int64_t{1} << (n.shape.rank() - 1);
}

Patterns::Id Patterns::behind_broadcast(Id i) const {
  if (!is(i, OpClass::broadcast)) return i;
  const Shape& seen = node(in(i, 0)).shape;
  i = in(i, 0);
  while (is(i, OpClass::reshape)) i = in(i, 0);
  return node(i).shape == seen ? i : kNoRoot;
}

Patterns::Id Patterns::behind_casts(Id i) const {
  while (is(i, ScalarOp::cast) && is_f32(i) && is_f32(in(i, 0))) i = in(i, 0);
  return i;
}

bool Patterns::is_transpose(Id a, Id b) const {
  if (!is(a, OpClass::permute) || in(a, 0) != b) return false;
  const auto order = node(a).attributes;
  const std::size_t rank = order.size();
  if (rank < 2) return false;
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    if (order[d] != static_cast<std::int64_t>(d)) return false;
  }
  return order[rank - 1] == static_cast<std::int64_t>(rank - 2);
}

std::optional<Expression> Patterns::between(Id result, std::initializer_list<Id> given) const {
  Expression e;
  const Shape& shape = node(result).shape;
  std::vector<Id> stack{result};
  const auto known = [](const std::vector<Id>& list, Id i) {
    return std::find(list.begin(), list.end(), i) != list.end();
  };
  while (!stack.empty()) {
    const Id i = stack.back();
    stack.pop_back();
    if (std::find(given.begin(), given.end(), i) != given.end() || known(e.operations, i)) continue;
    if (is(i, OpClass::scalar)) continue;
    if (is(i, OpClass::elementwise) && node(i).shape == shape) {
      e.operations.push_back(i);
      if (e.operations.size() > kMaxScoreOperations) return {};
      for (Id input : program_.inputs_of(i)) stack.push_back(input);
    } else if (!known(e.reads, i)) {
      e.reads.push_back(i);
      if (e.reads.size() > kMaxScoreReads) return {};
    }
  }
  std::sort(e.operations.begin(), e.operations.end());
  std::sort(e.reads.begin(), e.reads.end());
  return e;
}

std::optional<Softmax> Patterns::softmax(Id p) const {
  if (!is(p, ScalarOp::div) || node(p).dtype != DType::f32) return {};
  Softmax s;
  s.probabilities = p;
  s.exponentials = in(p, 0);
  s.total = in(p, 1);
  if (!is(s.exponentials, ScalarOp::exp) || !is(s.total, OpClass::broadcast)) return {};
  const Id sum = behind_broadcast(s.total);
  if (!is_row_reduction(sum, ScalarOp::add) || in(sum, 0) != s.exponentials) return {};
  s.score = in(s.exponentials, 0);
  if (is(s.score, ScalarOp::sub)) {
    const Id highest = behind_broadcast(in(s.score, 1));
    if (is_row_reduction(highest, ScalarOp::maximum) && in(highest, 0) == in(s.score, 0)) {
      s.score = in(s.score, 0);
    }
  }
  return with_raw(s);
}

std::optional<Softmax> Patterns::with_raw(Softmax s) const {
  const auto all = between(s.score, {});
  if (!all) return {};
  for (Id read : all->reads) {
    if (!is_product(read) || node(read).shape != node(s.score).shape) continue;
    if (s.raw != kNoRoot) return {};
    s.raw = read;
  }
  if (s.raw == kNoRoot || !is_f32(s.raw) || node(s.score).dtype != DType::f32) return {};
  s.expression = between(s.score, {s.raw}).value();
  return s;
}

}  // namespace caldera
