#include "ops/nn/linear.h"

#include <fmt/core.h>

#include <cstdint>

#include "ops/core/arithmetic.h"
#include "ops/core/node_builder.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"

namespace caldera {
namespace {

/// y plus a bias of the shape of its last axis.
LazyTensor biased(const char* op, const LazyTensor& y, const LazyTensor& bias, const Shape& wanted) {
  if (!bias.defined()) return y;
  ops::check_domain(op, ScalarDomain::floating, bias.dtype());
  if (bias.shape() != wanted)
    throw ShapeError(fmt::format("{}: bias {} is not {}", op, bias.shape().to_string(), wanted.to_string()));
  return y + bias;
}

}  // namespace

LazyTensor linear(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias) {
  ops::check_domain("linear", ScalarDomain::floating, x.dtype());
  ops::check_domain("linear", ScalarDomain::floating, weight.dtype());
  const bool fits =
      (weight.rank() == 1 || weight.rank() == 2) && x.rank() > 0 && x.shape(-1) == weight.shape(-1);
  if (!fits)
    throw ShapeError(fmt::format("linear: x {} and weight {}; want (..., in) and (out, in) or (in)",
                                 x.shape().to_string(), weight.shape().to_string()));
  const bool is_vector = weight.rank() == 1;
  const LazyTensor y = matmul(x, is_vector ? weight : transpose(weight));
  return biased("linear", y, bias, is_vector ? Shape{} : Shape{weight.shape(0)});
}

LazyTensor bilinear(const LazyTensor& a, const LazyTensor& b, const LazyTensor& weight,
                    const LazyTensor& bias) {
  for (const LazyTensor& x : {a, b, weight}) ops::check_domain("bilinear", ScalarDomain::floating, x.dtype());
  bool fits = weight.rank() == 3 && a.rank() > 0 && a.rank() == b.rank() && a.shape(-1) == weight.shape(1) &&
              b.shape(-1) == weight.shape(2);
  for (int i = 0; fits && i + 1 < a.rank(); ++i) fits = a.shape(i) == b.shape(i);
  if (!fits)
    throw ShapeError(
        fmt::format("bilinear: {} and {} by weight {}; want (..., in1), (..., in2), (out, in1, in2)",
                    a.shape().to_string(), b.shape().to_string(), weight.shape().to_string()));
  const std::int64_t out = weight.shape(0), in1 = weight.shape(1), in2 = weight.shape(2);
  // Rows (in1) by (in1, out in2), and of that each part of in2 by b.
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < a.rank(); ++i) rows *= a.shape(i);
  const LazyTensor wide = matmul(a, reshape(swapaxes(weight, 0, 1), Shape{in1, out * in2}));
  const LazyTensor y = sum(reshape(wide, Shape{rows, out, in2}) * reshape(b, Shape{rows, 1, in2}), -1);
  Shape shape = a.shape();
  shape[a.rank() - 1] = out;
  return biased("bilinear", reshape(y, shape), bias, Shape{out});
}

}  // namespace caldera
