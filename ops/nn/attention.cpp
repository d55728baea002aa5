#include "ops/nn/attention.h"

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "ops/core/node_builder.h"
#include "ops/table/families.h"
#include "ops/table/operands.h"
#include "ops/table/samples.h"

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

/// x where a number drawn for each place of `mask`, which broadcasts to x, is p or more.
LazyTensor dropped(const char* op, const LazyTensor& x, double p, std::uint64_t seed, const Shape& mask) {
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  // Written so that NaN is refused too.
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("{}: probability {} is not in [0, 1]", op, p));
  if (p == 0) return x;
  const LazyTensor drawn = random_uniform(mask, seed, DType::f32, x.device());
  // For p = 1 nothing is chosen; what is not chosen must be finite for the sake of the gradient.
  return where(greater_equal(drawn, p), x * (p < 1 ? 1 / (1 - p) : 0), zeros_like(x));
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

LazyTensor dropout(const LazyTensor& x, double p, std::uint64_t seed) {
  return dropped("dropout", x, p, seed, x.shape());
}

LazyTensor channel_dropout(const LazyTensor& x, double p, std::uint64_t seed) {
  if (x.rank() < 2)
    throw ShapeError(fmt::format("channel_dropout: {} is not (batch, channels, ...)", x.shape().to_string()));
  Shape channels{x.shape(0), x.shape(1)};
  for (int i = 2; i < x.rank(); ++i) channels.push_back(1);
  return dropped("channel_dropout", x, p, seed, channels);
}

LazyTensor embedding(const LazyTensor& weight, const LazyTensor& indices,
                     std::optional<std::int64_t> padding_idx) {
  ops::check_domain("embedding", ScalarDomain::floating, weight.dtype());
  if (weight.rank() != 2)
    throw ShapeError(
        fmt::format("embedding: weight {} is not a matrix (count, features)", weight.shape().to_string()));
  if (!is_integral(indices.dtype()))
    throw DTypeError(fmt::format("embedding: indices are {}, want integers", name(indices.dtype())));
  LazyTensor rows = take(weight, indices, 0);
  if (!padding_idx) return rows;
  const std::int64_t count = weight.shape(0);
  if (*padding_idx < -count || *padding_idx >= count)
    throw ValueError(fmt::format("embedding: padding_idx {} is outside of {} rows", *padding_idx, count));
  const auto at = static_cast<int>(*padding_idx < 0 ? *padding_idx + count : *padding_idx);
  const LazyTensor is_padding = equal(ops::anchored(indices, weight.device()), at);
  return where(expand_dims(is_padding, -1), stop_gradient(rows), rows);
}

namespace ops {
namespace {

using Results = std::vector<LazyTensor>;

constexpr Range kSmall{.low = -1, .high = 1};

/// Every row has a place to look at.
Operand boolean_mask(const Shape& shape) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i)
    values.push_back(i % shape.back() == 0 || (i * 5 + i / 3) % 7 < 4 ? 1 : 0);
  return {.shape = shape, .dtype = DType::boolean, .values = std::move(values)};
}

std::vector<Sample> attention_samples(const Operation&) {
  struct Shapes {
    Shape q, k, v;
  };
  const auto three = [](const Shapes& s) {
    return std::vector<Operand>{{s.q, kSmall}, {s.k, kSmall}, {s.v, kSmall}};
  };
  const auto masked = [&](const Shapes& s, const Operand& mask) {
    std::vector<Operand> operands = three(s);
    operands.push_back(mask);
    return operands;
  };
  std::vector<Sample> out;
  static const Shapes kShapes[] = {
      {{1, 1}, {1, 1}, {1, 1}},
      {{3, 4}, {5, 4}, {5, 4}},
      {{7, 3}, {7, 3}, {7, 2}},
      {{2, 3, 4}, {2, 5, 4}, {2, 5, 4}},
      {{2, 2, 3, 8}, {2, 2, 3, 8}, {2, 2, 3, 8}},
      {{2, 2, 3, 4}, {2, 1, 5, 4}, {1, 2, 5, 4}},
      {{4, 3}, {33, 3}, {33, 3}},
  };
  for (const Shapes& s : kShapes) {
    out.push_back({three(s)});
    out.push_back({three(s), {{"is_causal", true}}});
    const std::int64_t queries = s.q[s.q.rank() - 2], keys = s.k[s.k.rank() - 2];
    out.push_back({masked(s, boolean_mask({queries, keys}))});
    out.push_back({masked(s, {{queries, keys}, kSmall}), {{"scale", 0.5}}});
    out.push_back({masked(s, {{keys}, kSmall})});
  }
  const Shapes batched = kShapes[4];
  out.push_back({masked(batched, boolean_mask({2, 1, 3, 3}))});
  out.push_back({masked(batched, boolean_mask({2, 3, 3}))});
  out.push_back({masked(batched, {{2, 1, 1, 3}, kSmall})});
  // Groups of query heads.
  static const Shapes kGrouped[] = {{{4, 3, 4}, {2, 5, 4}, {2, 5, 4}},
                                    {{2, 6, 3, 4}, {2, 2, 3, 4}, {2, 2, 3, 4}},
                                    {{2, 3, 2, 3}, {2, 1, 4, 3}, {2, 1, 4, 5}},
                                    {{2, 2, 3, 4}, {2, 2, 3, 4}, {2, 2, 3, 4}}};
  for (const Shapes& s : kGrouped) {
    const std::int64_t heads = s.q[s.q.rank() - 3], queries = s.q[s.q.rank() - 2], keys = s.k[s.k.rank() - 2];
    out.push_back({three(s), {{"enable_gqa", true}}});
    out.push_back({three(s), {{"enable_gqa", true}, {"is_causal", true}}});
    out.push_back({masked(s, boolean_mask({heads, queries, keys})), {{"enable_gqa", true}}});
    out.push_back({masked(s, {{1, queries, keys}, kSmall}), {{"enable_gqa", true}}});
    out.push_back({masked(s, {{queries, keys}, kSmall}), {{"enable_gqa", true}, {"scale", 0.5}}});
  }
  out.push_back({three({{0, 4}, {3, 4}, {3, 4}})});
  return out;
}

std::vector<ErrorSample> attention_errors(const Operation&) {
  const Arguments gqa{{"enable_gqa", true}};
  return {
      {Refusal::shape, {{{3}}, {{5, 3}}, {{5, 3}}}, {}, "(3,)"},
      {Refusal::shape, {{{2, 3}}, {{5, 4}}, {{5, 4}}}, {}, "(5, 4)"},
      {Refusal::shape, {{{2, 3}}, {{5, 3}}, {{4, 3}}}, {}, "(4, 3)"},
      {Refusal::shape, {{{2, 3}}, {{5, 3}}, {{5, 3}}, boolean_mask({2, 4})}, {}, "(2, 4)"},
      {Refusal::shape, {{{3, 3, 4}}, {{2, 5, 4}}, {{2, 5, 4}}}, {}, "(3, 3, 4)"},
      {Refusal::shape, {{{2, 3, 4}}, {{2, 5, 4}}, {{3, 5, 4}}}, {}, "(3, 5, 4)"},
      {Refusal::shape, {{{3, 2, 3, 4}}, {{2, 2, 5, 4}}, {{2, 2, 5, 4}}}, gqa, "(3, 2, 3, 4)"},
      {Refusal::shape, {{{2, 3}}, {{5, 3}}, {{5, 3}}, boolean_mask({3, 2, 5})}, {}, "(3, 2, 5)"},
      {Refusal::shape, {{{3, 2, 3}}, {{2, 5, 3}}, {{2, 5, 3}}}, gqa, "(3, 2, 3)"},
      {Refusal::shape, {{{2, 3}}, {{5, 3}}, {{5, 3}}}, gqa, "(2, 3)"},
      {Refusal::shape, {{{4, 2, 3}}, {{2, 5, 3}}, {{2, 5, 3}}, boolean_mask({2, 2, 5})}, gqa, "(2, 2, 5)"},
      {Refusal::dtype, {{{2, 3}}, {{5, 3}}, {{5, 3}}, {.shape = {2, 5}, .dtype = DType::i32}}, {}, "int32"},
      {Refusal::value, {{{2, 3}}, {{5, 3}}, {{5, 3}}, boolean_mask({2, 5})}, {{"is_causal", true}}, "mask"}};
}

Results call_attention(Tensors x, const Arguments& a) {
  AttentionOptions options{.is_causal = a.flag("is_causal", false),
                           .enable_gqa = a.flag("enable_gqa", false)};
  options.mask = optional_operand(x, 3);
  if (a.has("scale")) options.scale = a.real("scale", 1);
  return {scaled_dot_product_attention(x[0], x[1], x[2], options)};
}

template <LazyTensor (*F)(const LazyTensor&, double, std::uint64_t)>
Results call_dropout(Tensors x, const Arguments& a) {
  return {F(x[0], a.real("p", 0.5), static_cast<std::uint64_t>(a.integer("seed", 0)))};
}

std::vector<Sample> dropout_samples(const std::vector<Shape>& shapes) {
  std::vector<Sample> out;
  for (const Shape& shape : shapes) {
    for (const double p : {0.5, 0.25}) out.push_back({{{shape}}, {{"p", p}, {"seed", std::int64_t{7}}}});
  }
  for (const double p : {0.0, 1.0}) out.push_back({{{{2, 3}}}, {{"p", p}, {"seed", std::int64_t{1} << 40}}});
  return out;
}

std::vector<ErrorSample> dropout_errors(const Operation&) {
  std::vector<ErrorSample> out;
  for (const double p : {-0.5, 1.5})
    out.push_back({Refusal::value, {{{2, 3}}}, {{"p", p}}, fmt::format("{}", p)});
  return out;
}

}  // namespace

std::span<const Operation> network_operations() {
  static const Operation kTable[] = {
      {.name = kAttention,
       .family = "network",
       .signature =
           "scaled_dot_product_attention(q, k, v, {mask=none, is_causal=false, scale=1/sqrt(features), "
           "enable_gqa=false})",
       .summary = "softmax(q k^T * scale, masked) v. A query that a boolean mask lets look at nothing gives "
                  "the mean of "
                  "v. With enable_gqa, groups of query heads share the heads of k and v.",
       .types = kFloating,
       .call = call_attention,
       .samples = attention_samples,
       .errors = attention_errors},
      {.name = "causal_mask",
       .family = "network",
       .signature = "causal_mask(queries, keys, offset=0)",
       .summary = "mask[i][j] = j <= i + offset: whether query i may look at key j.",
       .types = {},
       .result = ResultType::boolean,
       .gradient = Gradient::none,
       .call = [](Tensors, const Arguments& a) -> Results {
         return {causal_mask(a.integer("queries", 0), a.integer("keys", 0), a.integer("offset", 0))};
       },
       .samples = [](const Operation&) -> std::vector<Sample> {
         std::vector<Sample> out;
         for (const std::int64_t offset : {-1, 0, 2}) {
           for (const auto& [queries, keys] :
                {std::pair<std::int64_t, std::int64_t>{0, 3}, {3, 5}, {7, 7}, {1, 33}})
             out.push_back({{}, {{"queries", queries}, {"keys", keys}, {"offset", offset}}});
         }
         return out;
       },
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         const auto extents = [](std::int64_t queries, std::int64_t keys) {
           return Arguments{{"queries", queries}, {"keys", keys}};
         };
         return {{Refusal::shape, {}, extents(-99, 5), "-99"}, {Refusal::shape, {}, extents(5, -1), "-1"}};
       }},
      {.name = "dropout",
       .family = "network",
       .signature = "dropout(x, p, seed)",
       .summary =
           "0 with probability p, else x / (1 - p); which, is a pure function of the seed and the shape.",
       .types = kFloating,
       .call = call_dropout<caldera::dropout>,
       .samples =
           [](const Operation&) {
             return dropout_samples({{}, {33}, {2, 3, 4}, {0, 3}});
           },
       .errors = dropout_errors},
      {.name = "channel_dropout",
       .family = "network",
       .signature = "channel_dropout(x, p, seed)",
       .summary = "dropout of whole channels, axis 1 of (batch, channels, ...).",
       .types = kFloating,
       .call = call_dropout<caldera::channel_dropout>,
       .samples =
           [](const Operation&) {
             return dropout_samples({{7, 3}, {2, 5, 3}, {3, 2, 2, 2}, {0, 3, 2}});
           },
       .errors =
           [](const Operation& op) {
             std::vector<ErrorSample> out = dropout_errors(op);
             out.push_back({Refusal::shape, {{{3}}}, {{"p", 0.5}}, "(3,)"});
             return out;
           }},
      {.name = "embedding",
       .family = "network",
       .signature = "embedding(weight, indices, padding_idx=none)",
       .summary =
           "Rows of weight by index; an index outside gives NaN. The gradient of row padding_idx is 0.",
       .types = kFloating,
       .call = [](Tensors x, const Arguments& a) -> Results {
         std::optional<std::int64_t> padding;
         if (a.has("padding_idx")) padding = a.integer("padding_idx", 0);
         return {embedding(x[0], x[1], padding)};
       },
       .samples = [](const Operation&) -> std::vector<Sample> {
         std::vector<Sample> out;
         for (const Operand& which : {index_operand({}, {4}), index_operand({4}, {2, 0, 2, 4}),
                                      index_operand({2, 3}, {1, 1, 4, 0, 2, 1}), index_operand({0}, {})}) {
           // Differences show a gradient where padding is read; tests/ops/network_test.cpp reads it.
           out.push_back({{{{5, 3}}, which}});
           out.push_back({{{{5, 1}}, which}, {{"padding_idx", std::int64_t{3}}}});
           out.push_back({{{{5, 7}}, which}, {{"padding_idx", std::int64_t{-2}}}});
         }
         return out;
       },
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         return {{Refusal::shape, {{{5}}, index_operand({2}, {0, 1})}, {}, "(5,)"},
                 {Refusal::shape, {{{2, 5, 3}}, index_operand({2}, {0, 1})}, {}, "(2, 5, 3)"},
                 {Refusal::dtype, {{{5, 3}}, {{2}}}, {}, "float32"},
                 {Refusal::value,
                  {{{5, 3}}, index_operand({2}, {0, 1})},
                  {{"padding_idx", std::int64_t{5}}},
                  "5"},
                 {Refusal::value,
                  {{{5, 3}}, index_operand({2}, {0, 1})},
                  {{"padding_idx", std::int64_t{-6}}},
                  "-6"}};
       }},
  };
  return kTable;
}

}  // namespace ops
}  // namespace caldera
