// The products of attention in bf16 on processors that multiply pairs of such numbers: q k^T and go v^T of
// the operands as they are; weights and their gradients rounded to bf16 ahead of their products.
#include <span>

#include "engine/device/cpu/attention/attention.h"
#include "engine/device/cpu/simd/micro_ops.h"

namespace caldera::cpu {
namespace {

FloatMatrix transposed(FloatMatrix x) { return {x.data, x.type, x.column, x.row}; }

FloatMatrix narrowed(const float* weights, std::int64_t count, std::int64_t keys, std::uint16_t* to) {
  static const MicroFn kNarrow = find_cast(DType::f32, DType::bf16);
  kNarrow(to, weights, weights, weights, count);
  return {reinterpret_cast<const std::byte*>(to), DType::bf16, keys, 1};
}

}  // namespace

FloatMatrix PreparedAttention::HalfRows::matrix() const {
  const Matrix& x = *of->matrix;
  return {of->data + first * x.row * static_cast<std::int64_t>(size_of(x.type)), x.type, x.row, x.column};
}

void PreparedAttention::multiply_pairs(const Work& work, const HalfRows& a, const HalfRows& b, float* to) {
  const ProductTerm term{a.of->matrix->columns, a.matrix(), transposed(b.matrix())};
  multiply_packed(*work.pairs, a.count, b.count, {&term, 1}, to, b.count, false);
}

void PreparedAttention::weigh_pairs(const Work& work, const float* weights, std::int64_t queries,
                                    const HalfRows& rows, float* sum, bool add) {
  const std::int64_t keys = rows.count;
  const ProductTerm term{keys, narrowed(weights, queries * keys, keys, work.narrowed), rows.matrix()};
  const std::int64_t columns = rows.of->matrix->columns;
  multiply_packed(*work.pairs, queries, columns, {&term, 1}, sum, columns, add);
}

void PreparedAttention::weigh_pairs_across(const Work& work, const float* weights, std::int64_t keys,
                                           const HalfRows& rows, float* sum, bool add) {
  const std::int64_t queries = rows.count;
  const ProductTerm term{queries, transposed(narrowed(weights, queries * keys, keys, work.narrowed)),
                         rows.matrix()};
  const std::int64_t columns = rows.of->matrix->columns;
  multiply_packed(*work.pairs, keys, columns, {&term, 1}, sum, columns, add);
}

}  // namespace caldera::cpu
