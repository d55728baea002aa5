// The entries of the family `network`.
#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/operands.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
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
  // Every query sees a key.
  for (const Shapes& s : {kShapes[2], kShapes[3], kShapes[6]}) {
    out.push_back({three(s), {{"window", std::int64_t{2}}}});
    out.push_back({three(s), {{"window", std::int64_t{2}}, {"is_causal", true}, {"softcap", 0.75}}});
    const std::int64_t more = s.k[s.k.rank() - 2] - s.q[s.q.rank() - 2];
    out.push_back({three(s), {{"is_causal", true}, {"offset", more}}});
    out.push_back({three(s), {{"window", std::int64_t{3}}, {"offset", more}, {"softcap", 2.0}}});
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
                           .offset = a.integer("offset", 0),
                           .enable_gqa = a.flag("enable_gqa", false)};
  if (a.has("window")) options.window = a.integer("window", 1);
  if (a.has("softcap")) options.softcap = a.real("softcap", 1);
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
      {.name = "scaled_dot_product_attention",
       .family = "network",
       .signature =
           "scaled_dot_product_attention(q, k, v, {mask=none, is_causal=false, window=none, offset=0, "
           "softcap=none, sinks=none, scale=1/sqrt(features), enable_gqa=false})",
       .summary = "softmax(q k^T * scale, masked) v. A query that a boolean mask lets look at nothing gives "
                  "the mean of v. With enable_gqa, groups of query heads share the heads of k and v.",
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

}  // namespace caldera::catalogue
