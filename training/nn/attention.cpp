#include "training/nn/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/core/views.h"
#include "ops/nn/attention.h"

namespace caldera {
namespace {

void check_projection(const char* name, const Projection& p, std::int64_t in, std::int64_t out) {
  if (p.in_features() != in || p.out_features() != out)
    throw ShapeError(fmt::format("Attention: {} maps {} to {} features, expected {} to {}", name,
                                 p.in_features(), p.out_features(), in, out));
}

}  // namespace

AttentionContext make_attention_context(RotaryEmbedding& rotary, std::int64_t length, KVCache* cache,
                                        Device device) {
  if (cache == nullptr) return {rotary.angles(length), causal_mask(length, length, 0, device), nullptr};
  const std::int64_t position = cache->position();
  // All of it now, or the plan would change with the tables in the middle of a text.
  rotary.reserve(cache->capacity());
  RotaryAngles angles = rotary.angles(length, position);
  cache->begin(length);
  // Also where nothing was written yet: then a call has the same plan at every position. What lies behind the
  // call's own positions is masked, and left out.
  return {std::move(angles), causal_mask(length, cache->capacity(), position, device), cache};
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
                  const AttentionContext& context, std::int64_t layer) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape(3)));
  if (context.cache == nullptr) return grouped_query_attention(q, k, v, context.mask, scale);
  context.cache->write(layer, k, v);
  return grouped_query_attention(q, context.cache->keys(layer), context.cache->values(layer), context.mask,
                                 scale);
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
  const LazyTensor q = apply_rotary(split_heads(q_proj->forward(x), config_.heads), context.angles);
  const LazyTensor k = apply_rotary(split_heads(k_proj->forward(x), config_.kv_heads), context.angles);
  const LazyTensor v = split_heads(v_proj->forward(x), config_.kv_heads);
  return o_proj->forward(merge_heads(attend(q, k, v, context, layer)));
}

void Attention::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.projection(join_name(prefix, "q_proj"), q_proj);
  visitor.projection(join_name(prefix, "k_proj"), k_proj);
  visitor.projection(join_name(prefix, "v_proj"), v_proj);
  visitor.projection(join_name(prefix, "o_proj"), o_proj);
}

}  // namespace caldera
