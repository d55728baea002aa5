#include "ops/nn/attention.h"

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/node_builder.h"
#include "ops/core/ranges.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/softmax.h"

namespace caldera {
namespace {

constexpr const char* kAttention = "scaled_dot_product_attention";
// Below any real score, and finite: a row with nothing to look at becomes uniform instead of NaN.
constexpr double kMasked = -1e30;

void check_attention(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                     const AttentionOptions& options) {
  const std::string given = fmt::format("{}: q {}, k {} and v {}", kAttention, q.shape().to_string(),
                                        k.shape().to_string(), v.shape().to_string());
  for (const LazyTensor* x : {&q, &k, &v}) ops::check_domain(kAttention, ScalarDomain::floating, x->dtype());
  const int least = options.enable_gqa ? 3 : 2;
  if (q.rank() < least || k.rank() < least || v.rank() < least)
    throw ShapeError(fmt::format("{} need {} axes or more", given, least));
  if (q.shape(-1) != k.shape(-1)) throw ShapeError(fmt::format("{}: q and k have other features", given));
  if (k.shape(-2) != v.shape(-2)) throw ShapeError(fmt::format("{}: not one value for each key", given));
  if (options.enable_gqa) {
    const std::int64_t heads = k.shape(-3);
    if (v.shape(-3) != heads || heads == 0 || q.shape(-3) % heads != 0)
      throw ShapeError(fmt::format("{}: the heads of q are no multiple of those of k and v", given));
  }
  const auto leading = [&](const LazyTensor& x) {
    return Shape(x.shape().span().first(static_cast<std::size_t>(x.rank() - least)));
  };
  try {
    broadcast_shapes(broadcast_shapes(leading(q), leading(k), kAttention), leading(v), kAttention);
  } catch (const ShapeError&) {  // it names the leading extents only
    throw ShapeError(fmt::format("{}: the leading axes do not broadcast", given));
  }
  if (options.is_causal && options.mask.defined())
    throw ValueError(
        fmt::format("{}: a mask is given beside is_causal; combine them in the mask", kAttention));
}

/// Attention in the form that the compiler recognises: a softmax over the last axis of element-wise
/// operations on one product, multiplied by v.
LazyTensor attend(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v, const LazyTensor& mask,
                  double scale) {
  const LazyTensor products = matmul(q, transpose(k));
  // Softmax in f32, as everyone does; kMasked would be infinite in f16.
  LazyTensor scores = astype(products, compute_type(products.dtype())) * scale;
  if (mask.defined()) {
    if (mask.dtype() != DType::boolean) ops::check_domain(kAttention, ScalarDomain::floating, mask.dtype());
    if (broadcast_shapes(scores.shape(), mask.shape(), kAttention) != scores.shape())
      throw ShapeError(fmt::format("{}: mask {} does not broadcast to the scores {}", kAttention,
                                   mask.shape().to_string(), scores.shape().to_string()));
    scores =
        mask.dtype() == DType::boolean ? where(mask, scores, kMasked) : scores + astype(mask, scores.dtype());
  }
  const LazyTensor weights = softmax(scores, -1);
  const DType type = promote(products.dtype(), v.dtype());
  return matmul(is_half(type) ? astype(weights, type) : weights, v);
}

/// (..., heads, n, m) with groups of neighbouring heads: (..., groups, heads / groups, n, m).
LazyTensor in_groups(const LazyTensor& x, std::int64_t groups) {
  Shape shape;
  for (int i = 0; i + 3 < x.rank(); ++i) shape.push_back(x.shape(i));
  for (const std::int64_t extent : {groups, x.shape(-3) / groups, x.shape(-2), x.shape(-1)})
    shape.push_back(extent);
  return reshape(x, shape);
}

/// The query heads that share a key head are an axis of their own, over which keys and values are broadcast:
/// they are never copied.
LazyTensor attend_in_groups(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                            const LazyTensor& mask, double scale) {
  const std::int64_t groups = k.shape(-3);
  const bool by_head = mask.defined() && mask.rank() >= 3;
  if (by_head && mask.shape(-3) != 1 && mask.shape(-3) != q.shape(-3))
    throw ShapeError(fmt::format("{}: mask {} is not for the heads of q {}", kAttention,
                                 mask.shape().to_string(), q.shape().to_string()));
  const LazyTensor grouped_mask = by_head ? in_groups(mask, mask.shape(-3) == 1 ? 1 : groups) : mask;
  const LazyTensor out =
      attend(in_groups(q, groups), in_groups(k, groups), in_groups(v, groups), grouped_mask, scale);
  Shape shape;
  for (int i = 0; i + 4 < out.rank(); ++i) shape.push_back(out.shape(i));
  for (const std::int64_t extent : {q.shape(-3), out.shape(-2), out.shape(-1)}) shape.push_back(extent);
  return reshape(out, shape);
}

}  // namespace

LazyTensor scaled_dot_product_attention(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                                        const AttentionOptions& options) {
  check_attention(q, k, v, options);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.shape(-1))));
  const LazyTensor mask =
      options.is_causal ? causal_mask(q.shape(-2), k.shape(-2), 0, q.device()) : options.mask;
  return options.enable_gqa ? attend_in_groups(q, k, v, mask, scale) : attend(q, k, v, mask, scale);
}

LazyTensor causal_mask(std::int64_t queries, std::int64_t keys, std::int64_t offset, Device device) {
  ops::check_extents("causal_mask", Shape{queries, keys}, DType::i32);
  const LazyTensor i = expand_dims(arange(queries, DType::i32, device) + static_cast<int>(offset), -1);
  return less_equal(arange(keys, DType::i32, device), i);
}
LazyTensor causal_mask(std::int64_t queries, std::int64_t keys, std::int64_t offset) {
  return causal_mask(queries, keys, offset, default_device());
}

}  // namespace caldera
