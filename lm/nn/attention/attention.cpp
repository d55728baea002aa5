#include "lm/nn/attention/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "lm/nn/precision.h"
#include "ops/core/comparison.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/nn/banded_mask.h"

namespace caldera {
namespace {

void check_projection(const char* name, const Projection& p, std::int64_t in, std::int64_t out) {
  if (p.in_features() != in || p.out_features() != out)
    throw ShapeError(fmt::format("Attention: {} maps {} to {} features, expected {} to {}", name,
                                 p.in_features(), p.out_features(), in, out));
}

void check_input(const LazyTensor& x) {
  if (x.rank() != 3)
    throw ShapeError(
        fmt::format("Attention: input {} is not (batch, positions, hidden)", x.shape().to_string()));
}

}  // namespace

AttentionContext make_attention_context(std::span<RotaryEmbedding> rotaries, std::int64_t batch,
                                        std::int64_t length, AttentionCache* cache) {
  AttentionContext context;
  context.cache = cache;
  if (cache != nullptr) {
    cache->begin(batch, length);
    context.positions = cache->positions();
  } else {
    context.positions = {.length = length, .first = 0, .rows = {}, .reach = length, .longest = length};
  }
  for (RotaryEmbedding& rotary : rotaries) context.angles.push_back(rotary.angles(context.positions));
  return context;
}

AttentionContext make_attention_context(RotaryEmbedding& rotary, std::int64_t batch, std::int64_t length,
                                        AttentionCache* cache) {
  return make_attention_context({&rotary, 1}, batch, length, cache);
}

LazyTensor split_heads(const LazyTensor& x, std::int64_t heads) {
  return permute_dims(reshape(x, Shape{x.shape(0), x.shape(1), heads, x.shape(2) / heads}), {0, 2, 1, 3});
}

LazyTensor merge_heads(const LazyTensor& x) {
  return reshape(permute_dims(x, {0, 2, 1, 3}), Shape{x.shape(0), x.shape(2), x.shape(1) * x.shape(3)});
}

LazyTensor attend(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                  const AttentionContext& context, std::int64_t layer, const AttentionForm& form,
                  const LazyTensor& sinks) {
  const AttendedKeys to = context.cache != nullptr ? context.cache->attended(layer, k, v, form)
                                                   : AttendedKeys{.keys = k, .values = v};
  AttentionOptions options{.mask = to.mask, .scale = form.scale, .enable_gqa = true};
  options.softcap = form.softcap;
  options.sinks = sinks;
  options.sink_key = to.sink_key;
  if (context.present.defined()) {
    const LazyTensor within =
        banded_mask(q.shape(2), k.shape(2), 0, !form.bidirectional, form.window, q.device());
    const LazyTensor present =
        reshape(context.present, Shape{context.present.shape(0), 1, 1, context.present.shape(1)});
    options.mask = within.defined() ? logical_and(within, present) : present;
  } else if (!to.mask.defined()) {
    options.is_causal = !form.bidirectional;
    options.window = form.window;
    options.offset = to.offset;
  }
  // A cache may keep keys in another type.
  return cast_like(scaled_dot_product_attention(q, to.keys, to.values, options), q);
}

AttentionHeads::AttentionHeads(const AttentionConfig& config, AttentionExtras extras)
    : config_(config),
      q_norm_(std::move(extras.q_norm)),
      k_norm_(std::move(extras.k_norm)),
      whole_width_(extras.whole_width),
      sinks_{std::move(extras.sinks)} {
  if (config.heads < 1 || config.kv_heads < 1 || config.heads % config.kv_heads != 0)
    throw ValueError(fmt::format("Attention: {} heads are no multiple of {} key-value heads", config.heads,
                                 config.kv_heads));
  if (config.form.sinks != sinks_.tensor.defined())
    throw ValueError("Attention: sinks belong to a form that has them, and to no other");
}

LazyTensor AttentionHeads::prepared(const LazyTensor& x, std::int64_t heads, Layer* norm,
                                    const AttentionContext& context) const {
  LazyTensor y = x;
  if (norm != nullptr && whole_width_) y = norm->forward(y);
  y = split_heads(y, heads);
  if (norm != nullptr && !whole_width_) y = norm->forward(y);
  return config_.rotary ? apply_rotary(y, context.angles.at(*config_.rotary)) : y;
}

LazyTensor AttentionHeads::forward(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                                   const AttentionContext& context, std::int64_t layer) {
  LazyTensor queries = prepared(q, config_.heads, q_norm_.get(), context);
  if (config_.rotary && context.angles.at(*config_.rotary).query_scale.defined())
    queries = queries * cast_like(context.angles[*config_.rotary].query_scale, queries);
  return merge_heads(attend(queries, prepared(k, config_.kv_heads, k_norm_.get(), context),
                            split_heads(v, config_.kv_heads), context, layer, config_.form, sinks_.tensor));
}

void AttentionHeads::visit(const std::string& prefix, ParameterVisitor& visitor) {
  if (q_norm_) visitor.module(join_name(prefix, "q_norm"), *q_norm_);
  if (k_norm_) visitor.module(join_name(prefix, "k_norm"), *k_norm_);
  if (sinks_.tensor.defined()) visitor.parameter(join_name(prefix, "sinks"), sinks_);
}

Attention::Attention(const AttentionConfig& config, std::unique_ptr<Projection> q,
                     std::unique_ptr<Projection> k, std::unique_ptr<Projection> v,
                     std::unique_ptr<Projection> o, AttentionExtras extras, AttentionNames names)
    : q_proj(std::move(q)),
      k_proj(std::move(k)),
      v_proj(std::move(v)),
      o_proj(std::move(o)),
      heads_(config, std::move(extras)),
      names_(std::move(names)) {
  check_projection("q_proj", *q_proj, config.hidden_size, config.heads * config.head_dim);
  check_projection("k_proj", *k_proj, config.hidden_size, config.kv_heads * config.head_dim);
  check_projection("v_proj", *v_proj, config.hidden_size, config.kv_heads * config.head_dim);
  check_projection("o_proj", *o_proj, config.heads * config.head_dim, config.hidden_size);
}

LazyTensor Attention::forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) {
  check_input(x);
  return o_proj->forward(
      heads_.forward(q_proj->forward(x), k_proj->forward(x), v_proj->forward(x), context, layer));
}

void Attention::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.projection(join_name(prefix, names_.q), q_proj);
  visitor.projection(join_name(prefix, names_.k), k_proj);
  visitor.projection(join_name(prefix, names_.v), v_proj);
  visitor.projection(join_name(prefix, names_.o), o_proj);
  visitor.module(prefix, heads_);
}

FusedAttention::FusedAttention(const AttentionConfig& config, std::string in_name,
                               std::unique_ptr<Projection> in, std::string out_name,
                               std::unique_ptr<Projection> out)
    : config_(config),
      in_name_(std::move(in_name)),
      out_name_(std::move(out_name)),
      in_(std::move(in)),
      out_(std::move(out)),
      heads_(config, {}) {
  check_projection(in_name_.c_str(), *in_, config.hidden_size,
                   (config.heads + 2 * config.kv_heads) * config.head_dim);
  check_projection(out_name_.c_str(), *out_, config.heads * config.head_dim, config.hidden_size);
}

LazyTensor FusedAttention::forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) {
  check_input(x);
  const LazyTensor all = in_->forward(x);
  const std::int64_t q = config_.heads * config_.head_dim, kv = config_.kv_heads * config_.head_dim;
  const auto part = [&](std::int64_t begin, std::int64_t width) {
    return slice(all, -1, begin, begin + width);
  };
  return out_->forward(heads_.forward(part(0, q), part(q, kv), part(q + kv, kv), context, layer));
}

void FusedAttention::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.projection(join_name(prefix, in_name_), in_);
  visitor.projection(join_name(prefix, out_name_), out_);
  visitor.module(prefix, heads_);
}

}  // namespace caldera
