#include "training/nn/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/softmax.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

constexpr double kMasked = -1e30;  // below any score, and finite

void check_projection(const char* name, const Projection& p, std::int64_t in, std::int64_t out) {
  if (p.in_features() != in || p.out_features() != out)
    throw ShapeError(fmt::format("Attention: {} maps {} to {} features, expected {} to {}", name,
                                 p.in_features(), p.out_features(), in, out));
}

/// Where query i of the call (at context.position + i) may look: boolean, and broadcasts to (B, 1, T, S).
/// Undefined where it may look anywhere.
LazyTensor permitted(std::int64_t queries, std::int64_t keys, const AttentionContext& context,
                     const AttentionSpec& spec) {
  const Device device = context.mask.device();
  const auto up_to = [&](std::int64_t offset) {
    return causal_mask(queries, keys, context.position + offset, device);
  };
  LazyTensor mask;
  const auto restrict_to = [&](const LazyTensor& more) {
    mask = mask.defined() ? logical_and(mask, more) : more;
  };
  if (!spec.bidirectional)
    restrict_to(context.mask);
  else if (spec.window)
    restrict_to(up_to(*spec.window - 1));
  if (spec.window) restrict_to(logical_not(up_to(-*spec.window)));
  if (context.present.defined())
    restrict_to(reshape(context.present, Shape{context.present.shape(0), 1, 1, keys}));
  return mask;
}

/// Attention with a soft cap or sinks, of its parts. Scores are f32.
LazyTensor composite_attention(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                               const LazyTensor& mask, const AttentionSpec& spec) {
  const std::int64_t batch = q.shape(0), heads = q.shape(1), groups = k.shape(1), length = q.shape(2);
  const auto by_group = [&](const LazyTensor& x, std::int64_t each) {
    return reshape(x, Shape{batch, groups, each, x.shape(2), x.shape(3)});
  };
  const LazyTensor products = matmul(by_group(q, heads / groups), transpose(by_group(k, 1)));
  LazyTensor scores =
      reshape(astype(products, DType::f32), Shape{batch, heads, length, k.shape(2)}) * spec.scale;
  if (spec.softcap) scores = tanh(scores / *spec.softcap) * *spec.softcap;
  if (mask.defined()) scores = where(mask, scores, kMasked);
  LazyTensor weights;
  if (spec.sinks.defined()) {
    const LazyTensor sinks = broadcast_to(reshape(astype(spec.sinks, DType::f32), Shape{1, heads, 1, 1}),
                                          Shape{batch, heads, length, 1});
    weights = slice(softmax(concatenate({scores, sinks}, -1), -1), -1, 0, k.shape(2));
  } else {
    weights = softmax(scores, -1);
  }
  const LazyTensor attended = matmul(by_group(astype(weights, q.dtype()), heads / groups), by_group(v, 1));
  return reshape(attended, Shape{batch, heads, length, v.shape(3)});
}

}  // namespace

AttentionContext make_attention_context(std::span<RotaryEmbedding> rotaries, std::int64_t length,
                                        KVCache* cache, Device device) {
  const std::int64_t position = cache == nullptr ? 0 : cache->position();
  const std::int64_t keys = cache == nullptr ? length : cache->capacity();
  AttentionContext context;
  for (RotaryEmbedding& rotary : rotaries) {
    // All of it now, or the plan would change with the tables in the middle of a text.
    if (cache != nullptr) rotary.reserve(keys);
    context.angles.push_back(rotary.angles(length, position));
  }
  if (cache != nullptr) cache->begin(length);
  // Also where nothing was written yet: then a call has the same plan at every position. What lies behind the
  // call's own positions is masked, and left out.
  context.mask = causal_mask(length, keys, position, device);
  context.cache = cache;
  context.position = position;
  return context;
}

AttentionContext make_attention_context(RotaryEmbedding& rotary, std::int64_t length, KVCache* cache,
                                        Device device) {
  return make_attention_context({&rotary, 1}, length, cache, device);
}

LazyTensor grouped_query_attention(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                                   const LazyTensor& mask, double scale) {
  const bool ranks = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && mask.rank() == 2;
  if (!ranks || k.shape() != v.shape() || q.shape(0) != k.shape(0) || q.shape(3) != k.shape(3) ||
      k.shape(1) == 0 || q.shape(1) % k.shape(1) != 0 || mask.shape() != Shape{q.shape(2), k.shape(2)})
    throw ShapeError(fmt::format("attention: q {}, k {}, v {} and mask {} do not fit", q.shape().to_string(),
                                 k.shape().to_string(), v.shape().to_string(), mask.shape().to_string()));
  return scaled_dot_product_attention(q, k, v, {.mask = mask, .scale = scale, .enable_gqa = true});
}

LazyTensor split_heads(const LazyTensor& x, std::int64_t heads) {
  return permute_dims(reshape(x, Shape{x.shape(0), x.shape(1), heads, x.shape(2) / heads}), {0, 2, 1, 3});
}

LazyTensor merge_heads(const LazyTensor& x) {
  return reshape(permute_dims(x, {0, 2, 1, 3}), Shape{x.shape(0), x.shape(2), x.shape(1) * x.shape(3)});
}

LazyTensor attend(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                  const AttentionContext& context, std::int64_t layer, const AttentionSpec& spec) {
  LazyTensor keys = k, values = v;
  if (context.cache != nullptr) {
    context.cache->write(layer, k, v);
    keys = context.cache->keys(layer);
    values = context.cache->values(layer);
  }
  const LazyTensor mask = permitted(q.shape(2), keys.shape(2), context, spec);
  if (!spec.softcap && !spec.sinks.defined())
    return scaled_dot_product_attention(q, keys, values,
                                        {.mask = mask, .scale = spec.scale, .enable_gqa = true});
  return composite_attention(q, keys, values, mask, spec);
}

Attention::Attention(const AttentionConfig& config, std::unique_ptr<Projection> q,
                     std::unique_ptr<Projection> k, std::unique_ptr<Projection> v,
                     std::unique_ptr<Projection> o)
    : q_proj(std::move(q)),
      k_proj(std::move(k)),
      v_proj(std::move(v)),
      o_proj(std::move(o)),
      config_(config) {
  if (config.heads < 1 || config.kv_heads < 1 || config.heads % config.kv_heads != 0)
    throw ValueError(fmt::format("Attention: {} heads are no multiple of {} key-value heads", config.heads,
                                 config.kv_heads));
  check_projection("q_proj", *q_proj, config.hidden_size, config.heads * config.head_dim);
  check_projection("k_proj", *k_proj, config.hidden_size, config.kv_heads * config.head_dim);
  check_projection("v_proj", *v_proj, config.hidden_size, config.kv_heads * config.head_dim);
  check_projection("o_proj", *o_proj, config.heads * config.head_dim, config.hidden_size);
}

LazyTensor Attention::forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) {
  if (x.rank() != 3)
    throw ShapeError(
        fmt::format("Attention: input {} is not (batch, positions, hidden)", x.shape().to_string()));
  const LazyTensor q = apply_rotary(split_heads(q_proj->forward(x), config_.heads), context.angles.front());
  const LazyTensor k =
      apply_rotary(split_heads(k_proj->forward(x), config_.kv_heads), context.angles.front());
  const LazyTensor v = split_heads(v_proj->forward(x), config_.kv_heads);
  const AttentionSpec spec{.scale = 1 / std::sqrt(static_cast<double>(config_.head_dim))};
  return o_proj->forward(merge_heads(attend(q, k, v, context, layer, spec)));
}

void Attention::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.projection(join_name(prefix, "q_proj"), q_proj);
  visitor.projection(join_name(prefix, "k_proj"), k_proj);
  visitor.projection(join_name(prefix, "v_proj"), v_proj);
  visitor.projection(join_name(prefix, "o_proj"), o_proj);
}

}  // namespace caldera
