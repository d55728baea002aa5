#include "ops/linalg/matrix_operands.h"

#include <fmt/core.h>

#include "engine/graph/transfer.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"

namespace caldera::matrices {

void check_matrices(const char* op, const LazyTensor& x, bool square) {
  if (x.rank() < 2 || (square && x.shape(-2) != x.shape(-1)))
    throw ShapeError(fmt::format("{}: needs {}matrices, (..., {}), got shape {}", op, square ? "square " : "",
                                 square ? "M, M" : "M, N", x.shape().to_string()));
  if (x.dtype() != DType::f32 && x.dtype() != DType::f64)
    throw DTypeError(fmt::format("{}: computes in float32 and float64, got {}; convert with astype()", op,
                                 name(x.dtype())));
}

LazyTensor on_host(const LazyTensor& x) {
  return x.device().kind == DeviceKind::vulkan ? to(x, Device::cpu()) : x;
}

System checked_system(const char* op, const LazyTensor& a, const LazyTensor& b, bool square) {
  check_matrices(op, a, square);
  const auto refuse = [&](const char* why) {
    throw ShapeError(
        fmt::format("{}: {} (shapes {} and {}); b is (M,) or (..., M, K) beside an a of (..., M, {})", op,
                    why, a.shape().to_string(), b.shape().to_string(), square ? "M" : "N"));
  };
  if (b.rank() == 0) refuse("the right side is a number");
  System s{.a = a, .b = b.rank() == 1 ? expand_dims(b, -1) : b, .of_vector = b.rank() == 1};
  check_matrices(op, s.b, false);
  if (a.device() != b.device())
    throw DeviceError(fmt::format(
        "{}: operands are on different devices ({} and {}), shapes {} and {}; move one with "
        "to()",
        op, a.device().to_string(), b.device().to_string(), a.shape().to_string(), b.shape().to_string()));
  if (s.b.shape(-2) != a.shape(-2)) refuse("the numbers of rows differ");
  const DType type = promote(a.dtype(), b.dtype());
  const auto batch_of = [](const LazyTensor& x) {
    return Shape(x.shape().span().first(static_cast<std::size_t>(x.rank() - 2)));
  };
  Shape batch;
  try {
    batch = broadcast_shapes(batch_of(s.a), batch_of(s.b), op);
  } catch (const ShapeError&) {  // it names the batches only
    refuse("the batch extents do not broadcast");
  }
  for (LazyTensor* x : {&s.a, &s.b}) {
    Shape shape = batch;
    shape.push_back(x->shape(-2));
    shape.push_back(x->shape(-1));
    *x = broadcast_to(astype(*x, type), shape);
  }
  return s;
}

}  // namespace caldera::matrices
