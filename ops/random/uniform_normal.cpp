#include "ops/random/uniform_normal.h"

#include <bit>
#include <string>

#include "ops/core/cast.h"
#include "ops/core/node_builder.h"
#include "ops/elementwise/rounding.h"
#include "ops/random/generator.h"

namespace caldera {
namespace {

const OpDef kUniform{.name = "random_uniform",
                     .kind = OpClass::random,
                     .scalar = ScalarOp::philox_uniform,
                     .zero_gradient = true};
const OpDef kNormal{.name = "random_normal",
                    .kind = OpClass::random,
                    .scalar = ScalarOp::philox_normal,
                    .zero_gradient = true};

LazyTensor random(const OpDef& op, const Shape& shape, std::uint64_t seed, DType dtype, Device device) {
  ops::check_countable(shape, std::string(op.name).c_str());
  ops::check_domain(std::string(op.name).c_str(), ScalarDomain::floating, dtype);
  return ops::make_source(op, shape, dtype, device,
                          {ops::scalar_of_bits(std::bit_cast<std::int64_t>(seed), DType::i64)});
}

}  // namespace

LazyTensor random_uniform(const Shape& shape, std::uint64_t seed, DType dtype, Device device) {
  if (!is_half(dtype)) return random(kUniform, shape, seed, dtype, device);
  // As many bits as the type holds: rounded, the largest numbers would be 1.
  const double steps = 1 << facts(dtype).digits;
  const LazyTensor wide = random(kUniform, shape, seed, DType::f32, device);
  return astype(floor(wide * steps) / steps, dtype);
}
LazyTensor random_uniform(const Shape& shape, std::uint64_t seed, DType dtype) {
  return random_uniform(shape, seed, dtype, default_device());
}
LazyTensor random_normal(const Shape& shape, std::uint64_t seed, DType dtype, Device device) {
  return random(kNormal, shape, seed, dtype, device);
}
LazyTensor random_normal(const Shape& shape, std::uint64_t seed, DType dtype) {
  return random_normal(shape, seed, dtype, default_device());
}

LazyTensor random_uniform(const Shape& shape, DType dtype, Device device) {
  return random_uniform(shape, next_seed(), dtype, device);
}
LazyTensor random_uniform(const Shape& shape, DType dtype) {
  return random_uniform(shape, next_seed(), dtype);
}
LazyTensor random_normal(const Shape& shape, DType dtype, Device device) {
  return random_normal(shape, next_seed(), dtype, device);
}
LazyTensor random_normal(const Shape& shape, DType dtype) { return random_normal(shape, next_seed(), dtype); }

}  // namespace caldera
