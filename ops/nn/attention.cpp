#include "ops/nn/attention.h"

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/ranges.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/banded_mask.h"
#include "ops/nn/softmax.h"
#include "ops/shape/joining.h"

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
  if (options.window && options.mask.defined())
    throw ValueError(
        fmt::format("{}: a mask is given beside a window; combine them in the mask", kAttention));
  if (options.window && *options.window < 1)
    throw ValueError(fmt::format("{}: a window of {} keys", kAttention, *options.window));
  if (options.softcap && !(*options.softcap > 0))
    throw ValueError(fmt::format("{}: a softcap of {} is not positive", kAttention, *options.softcap));
  if (options.sinks.defined()) {
    ops::check_domain(kAttention, ScalarDomain::floating, options.sinks.dtype());
    if (q.rank() < 3 || options.sinks.shape() != Shape{q.shape(-3)})
      throw ShapeError(fmt::format("{} and sinks {}: there is to be one for each head of q", given,
                                   options.sinks.shape().to_string()));
  }
  if (options.sink_key && (!options.sinks.defined() || k.shape(-2) == 0))
    throw ValueError(fmt::format("{}: sink_key without sinks, or without a key", kAttention));
}

/// What is done to the products q k^T.
struct Scores {
  double scale = 1;
  std::optional<double> softcap = {};
  LazyTensor mask = {};
  LazyTensor sinks = {};  // broadcasts to the scores of key 0, which they replace; may be undefined
};

/// Whether a column is that of key 0, for masks and scores (queries, keys).
LazyTensor is_first_key(std::int64_t keys, Device device) {
  return equal(arange(keys, DType::i32, device), 0);
}

/// Attention in the form that the compiler recognises: a softmax over the last axis of element-wise
/// operations on one product, multiplied by v.
LazyTensor attend(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v, const Scores& how) {
  const LazyTensor products = matmul(q, transpose(k));
  // Softmax in f32, as everyone does; kMasked would be infinite in f16.
  LazyTensor scores = astype(products, compute_type(products.dtype())) * how.scale;
  if (how.softcap) scores = tanh(scores / *how.softcap) * *how.softcap;
  const LazyTensor& mask = how.mask;
  // The mask comes last: there the compiler looks for it.
  if (how.sinks.defined())
    scores = where(is_first_key(k.shape(-2), k.device()), astype(how.sinks, scores.dtype()), scores);
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
                            const Scores& how) {
  const std::int64_t groups = k.shape(-3);
  Scores grouped = how;
  const bool by_head = how.mask.defined() && how.mask.rank() >= 3;
  if (by_head && how.mask.shape(-3) != 1 && how.mask.shape(-3) != q.shape(-3))
    throw ShapeError(fmt::format("{}: mask {} is not for the heads of q {}", kAttention,
                                 how.mask.shape().to_string(), q.shape().to_string()));
  if (by_head) grouped.mask = in_groups(how.mask, how.mask.shape(-3) == 1 ? 1 : groups);
  if (how.sinks.defined()) grouped.sinks = in_groups(how.sinks, groups);
  const LazyTensor out = attend(in_groups(q, groups), in_groups(k, groups), in_groups(v, groups), grouped);
  Shape shape;
  for (int i = 0; i + 4 < out.rank(); ++i) shape.push_back(out.shape(i));
  for (const std::int64_t extent : {q.shape(-3), out.shape(-2), out.shape(-1)}) shape.push_back(extent);
  return reshape(out, shape);
}

/// x (..., keys, features) behind a key of zeros.
LazyTensor behind_zeros(const LazyTensor& x) {
  Shape one = x.shape();
  one[x.rank() - 2] = 1;
  return concatenate({zeros(one, x.dtype(), x.device()), x}, -2);
}

/// A mask (..., keys or 1) that has something to say of key 0 too: it is visible. `keys` counts that one.
LazyTensor with_sink_visible(LazyTensor mask, bool sink_key, std::int64_t keys, Device device) {
  if (mask.shape(-1) == 1) {  // it speaks of all keys alike, but not of the sink
    Shape wide = mask.shape();
    wide[mask.rank() - 1] = sink_key ? keys : keys - 1;
    mask = broadcast_to(mask, wide);
  }
  const bool boolean = mask.dtype() == DType::boolean;
  if (!sink_key) {
    Shape one = mask.shape();
    one[mask.rank() - 1] = 1;
    const LazyTensor visible =
        boolean ? ones(one, DType::boolean, mask.device()) : zeros(one, mask.dtype(), mask.device());
    return concatenate({visible, mask}, -1);
  }
  const LazyTensor first = is_first_key(mask.shape(-1), device);
  return boolean ? logical_or(mask, first) : where(first, zeros_like(mask), mask);
}

}  // namespace

LazyTensor scaled_dot_product_attention(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                                        const AttentionOptions& options) {
  check_attention(q, k, v, options);
  Scores how{.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.shape(-1)))),
             .softcap = options.softcap};
  LazyTensor keys = k, values = v;
  const bool sinks = options.sinks.defined();
  if (sinks && !options.sink_key) {
    keys = behind_zeros(k);
    values = behind_zeros(v);
  }
  const std::int64_t offset = options.offset + (sinks ? 1 : 0);
  if (sinks) how.sinks = reshape(options.sinks, Shape{q.shape(-3), 1, 1});
  if (options.mask.defined()) {
    how.mask =
        sinks ? with_sink_visible(options.mask, options.sink_key, keys.shape(-2), q.device()) : options.mask;
  } else {
    how.mask =
        banded_mask(q.shape(-2), keys.shape(-2), offset, options.is_causal, options.window, q.device());
    // Else every query sees key 0.
    if (sinks && how.mask.defined() && (options.window || options.offset < 0))
      how.mask = logical_or(how.mask, is_first_key(keys.shape(-2), q.device()));
  }
  return options.enable_gqa ? attend_in_groups(q, keys, values, how) : attend(q, keys, values, how);
}

LazyTensor banded_mask(std::int64_t queries, std::int64_t keys, std::int64_t offset, bool causal,
                       std::optional<std::int64_t> window, Device device) {
  const auto up_to = [&](std::int64_t more) { return causal_mask(queries, keys, offset + more, device); };
  LazyTensor mask;
  if (causal)
    mask = up_to(0);
  else if (window)
    mask = up_to(*window - 1);
  return window ? logical_and(mask, logical_not(up_to(-*window))) : mask;
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
