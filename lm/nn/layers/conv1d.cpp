#include "lm/nn/layers/conv1d.h"

#include <fmt/format.h>

#include "lm/nn/init.h"
#include "lm/nn/precision.h"
#include "ops/linalg/matmul.h"

namespace caldera {

Conv1D::Conv1D(std::int64_t in_features, std::int64_t out_features, double std, std::uint64_t seed,
               Device device)
    : weight_{normal_init(Shape{in_features, out_features}, std, seed, device)},
      bias_{LazyTensor::zeros(Shape{out_features}, DType::f32, device)} {}

LazyTensor Conv1D::forward(const LazyTensor& x) {
  if (x.rank() == 0 || x.shape(-1) != in_features())
    throw ShapeError(
        fmt::format("Conv1D: input {} does not end in {} features", x.shape().to_string(), in_features()));
  return matmul(x, cast_like(weight_.tensor, x)) + cast_like(bias_.tensor, x);
}

void Conv1D::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.parameter(join_name(prefix, "weight"), weight_);
  visitor.parameter(join_name(prefix, "bias"), bias_);
}

}  // namespace caldera
