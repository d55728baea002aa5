#include "training/optim/block_code.h"

#include <algorithm>
#include <cmath>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/padding.h"
#include "ops/sort/sorting.h"

namespace caldera::detail {

std::vector<float> dynamic_map(bool is_signed) {
  constexpr int kExponents = 7;
  std::vector<float> map{0, 1};
  for (int i = 0; i < kExponents; ++i) {
    // [0.1, 1] in equal parts, the middle of each, times a power of ten.
    const int parts = is_signed ? 1 << i : 1 << (i + 1);
    const double power = std::pow(10.0, i - (kExponents - 1));
    for (int part = 0; part < parts; ++part) {
      const double middle = 0.1 + 0.9 * (part + 0.5) / parts;
      map.push_back(static_cast<float>(power * middle));
      if (is_signed) map.push_back(static_cast<float>(-power * middle));
    }
  }
  std::ranges::sort(map);
  return map;
}

BlockCode::BlockCode(bool is_signed, Device device) {
  const std::vector<float> map = dynamic_map(is_signed);
  std::vector<float> boundaries;
  for (std::size_t i = 1; i < map.size(); ++i) boundaries.push_back((map[i - 1] + map[i]) / 2);
  map_ = LazyTensor::from_vector(map, Shape{static_cast<std::int64_t>(map.size())}, device);
  boundaries_ =
      LazyTensor::from_vector(boundaries, Shape{static_cast<std::int64_t>(boundaries.size())}, device);
}

CodedTensor BlockCode::encode(const LazyTensor& x) const {
  const std::int64_t count = blocks(x);
  LazyTensor flat = reshape(x, Shape{x.numel()});
  if (const std::int64_t missing = count * kBlock - x.numel(); missing > 0) flat = pad(flat, {0}, {missing});
  const LazyTensor rows = reshape(flat, Shape{count, kBlock});
  const LazyTensor absmax = max(abs(rows), {1}, /*keepdims=*/true);
  // A block of zeros: 0 / 1, and absmax stays 0.
  const LazyTensor scaled = rows / where(equal(absmax, 0.0), 1.0, absmax);
  return {.codes = astype(searchsorted(boundaries_, scaled), DType::u8), .absmax = absmax};
}

LazyTensor BlockCode::decode(const CodedTensor& coded, const Shape& shape) const {
  const LazyTensor values = take(map_, astype(coded.codes, DType::i32)) * coded.absmax;
  const LazyTensor flat = reshape(values, Shape{values.numel()});
  return reshape(slice(flat, 0, 0, shape.numel()), shape);
}

}  // namespace caldera::detail
