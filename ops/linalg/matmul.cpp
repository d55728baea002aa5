#include "ops/linalg/matmul.h"

#include <fmt/core.h>

#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/node_builder.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

void contract_vjp(VjpContext& c) {
  if (c.needed[0]) c.grads[0] = matmul(c.cotangent, transpose(c.inputs[1]));
  if (c.needed[1]) c.grads[1] = matmul(transpose(c.inputs[0]), c.cotangent);
}

void contract_jvp(JvpContext& c) {
  if (c.tangents[0].defined()) c.tangent = matmul(c.tangents[0], c.inputs[1]);
  if (!c.tangents[1].defined()) return;
  const LazyTensor second = matmul(c.inputs[0], c.tangents[1]);
  c.tangent = c.tangent.defined() ? c.tangent + second : second;
}

const OpDef kContract{.name = "matmul", .kind = OpClass::contract, .vjp = contract_vjp, .jvp = contract_jvp};

[[noreturn]] void mismatch(const LazyTensor& a, const LazyTensor& b, const char* why) {
  throw ShapeError(
      fmt::format("matmul: {} (shapes {} and {})", why, a.shape().to_string(), b.shape().to_string()));
}

/// `batch` followed by the last two extents of x.
Shape with_batch(const Shape& batch, const LazyTensor& x) {
  Shape out = batch;
  out.push_back(x.shape(-2));
  out.push_back(x.shape(-1));
  return out;
}

Shape batch_of(const LazyTensor& x) {
  return Shape(x.shape().span().first(static_cast<std::size_t>(x.rank() - 2)));
}

Shape common_batch(const LazyTensor& a, const LazyTensor& b) {
  try {
    return broadcast_shapes(batch_of(a), batch_of(b), "matmul");
  } catch (const ShapeError&) {  // it names the batches only
    mismatch(a, b, "the batch extents do not broadcast");
  }
}

LazyTensor matmul_matrices(const LazyTensor& a, const LazyTensor& b) {
  if (a.rank() > 2 && b.rank() == 2) {
    // Leading extents of `a` are rows like any others. One product instead of a batch, and so is the gradient
    // of b.
    std::int64_t rows = 1;
    for (int i = 0; i < a.rank() - 1; ++i) rows *= a.shape()[i];
    Shape out = a.shape();
    out[a.rank() - 1] = b.shape(-1);
    return reshape(matmul_matrices(reshape(a, Shape{rows, a.shape(-1)}), b), out);
  }
  const Shape batch = common_batch(a, b);
  const LazyTensor x = broadcast_to(a, with_batch(batch, a));
  const LazyTensor y = broadcast_to(b, with_batch(batch, b));
  Shape out = batch;
  out.push_back(x.shape(-2));
  out.push_back(y.shape(-1));
  return ops::make(kContract, out, x.dtype(), {x, y});
}

}  // namespace

LazyTensor matmul(const LazyTensor& a, const LazyTensor& b) {
  if (a.rank() == 0 || b.rank() == 0) mismatch(a, b, "operands need at least one dimension");
  if (a.shape(-1) != b.shape(b.rank() == 1 ? -1 : -2)) mismatch(a, b, "the inner extents differ");
  const DType dtype = promote(a.dtype(), b.dtype());
  ops::check_domain("matmul", ScalarDomain::numeric, dtype);
  LazyTensor x = astype(a, dtype);
  LazyTensor y = astype(b, dtype);
  if (x.rank() == 1) x = expand_dims(x, 0);
  if (y.rank() == 1) y = expand_dims(y, 1);
  LazyTensor out = matmul_matrices(x, y);
  if (b.rank() == 1) out = squeeze(out, -1);
  if (a.rank() == 1) out = squeeze(out, b.rank() == 1 ? -1 : -2);
  return out;
}

}  // namespace caldera
