// Matrix product and what is made of it.
#include <fmt/core.h>

#include "ops/core/node_builder.h"
#include "ops/table/families.h"
#include "ops/table/samples.h"

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

LazyTensor lora_delta(const LazyTensor& x, const LazyTensor& a, const LazyTensor& b, double scale) {
  if (a.rank() != 2 || b.rank() != 2 || x.rank() == 0 || x.shape(-1) != a.shape(0) ||
      a.shape(1) != b.shape(0)) {
    throw ShapeError(
        fmt::format("lora_delta: expected x (..., in), a (in, rank), b (rank, out), got {}, {}, {}",
                    x.shape().to_string(), a.shape().to_string(), b.shape().to_string()));
  }
  for (const LazyTensor* operand : {&x, &a, &b})
    ops::check_domain("lora_delta", ScalarDomain::floating, operand->dtype());
  return matmul(matmul(x, a), b) * scale;
}

namespace ops {
namespace {

std::vector<Sample> matmul_samples(const Operation&) {
  struct Pair {
    Shape a, b;
  };
  static const Pair kPairs[] = {{{1}, {1}},          {{7}, {7}},
                                {{3}, {3, 4}},       {{4, 3}, {3}},
                                {{2, 3}, {3, 4}},    {{1, 5}, {5, 1}},
                                {{5, 1}, {1, 5}},    {{9, 17}, {17, 6}},
                                {{2, 4, 3}, {3, 5}}, {{2, 4, 3}, {2, 3, 5}},
                                {{4, 3}, {2, 3, 5}}, {{2, 1, 4, 3}, {3, 3, 2}},
                                {{2, 0}, {0, 3}},    {{0, 3}, {3, 2}},
                                {{3}, {2, 3, 4}}};
  std::vector<Sample> out;
  for (const Pair& pair : kPairs) out.push_back({{{pair.a}, {pair.b}}});
  return out;
}

std::vector<ErrorSample> matmul_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4, 5}}}, .mentions = "(4, 5)"},
          {.refusal = Refusal::shape, .operands = {{{3}}, {{4}}}, .mentions = "(4,)"},
          {.refusal = Refusal::shape, .operands = {{{2, 3, 4}}, {{5, 4, 3}}}, .mentions = "(5, 4, 3)"},
          {.refusal = Refusal::shape, .operands = {{{}}, {{2, 2}}}, .mentions = "()"}};
}

std::vector<Sample> lora_samples(const Operation&) {
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{5}, Shape{1, 5}, Shape{7, 5}, Shape{2, 3, 5}, Shape{0, 5}}) {
    for (const std::int64_t rank : {1, 3}) {
      out.push_back({{{shape}, {{5, rank}}, {{rank, 4}}}, {{"scale", 0.75}}});
    }
  }
  return out;
}

std::vector<ErrorSample> lora_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4, 2}}, {{2, 5}}}, .mentions = "(4, 2)"},
          {.refusal = Refusal::shape, .operands = {{{2, 3}}, {{3, 2}}, {{3, 5}}}, .mentions = "(3, 5)"}};
}

}  // namespace

std::span<const Operation> matmul_operations() {
  static const Operation kTable[] = {
      {.name = "matmul",
       .family = "matmul",
       .signature = "matmul(a, b)",
       .summary =
           "The matrix product, with the Array API's rules for vectors and broadcast batches. 16-bit types "
           "accumulate in float32.",
       .types = kNumeric,
       .call = call_binary<caldera::matmul>,
       .samples = matmul_samples,
       .errors = matmul_errors},
      {.name = "lora_delta",
       .family = "matmul",
       .signature = "lora_delta(x, a, b, scale)",
       .summary = "scale * ((x @ a) @ b): what a LoRA adapter adds to a layer's output.",
       .types = kFloating,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::lora_delta(x[0], x[1], x[2], a.real("scale", 1))};
       },
       .samples = lora_samples,
       .errors = lora_errors},
  };
  return kTable;
}

}  // namespace ops
}  // namespace caldera
