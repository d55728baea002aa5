// The suite "ops": every family of operation.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "benches/suites/op_case.h"
#include "benches/suites/suites.h"
#include "engine/graph/lazy_tensor.h"
#include "engine/runtime/runtime.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/linalg/matmul.h"
#include "ops/loss/cross_entropy.h"
#include "ops/nn/activations.h"
#include "ops/nn/normalization.h"
#include "ops/nn/softmax.h"
#include "ops/random/uniform_normal.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/mean.h"
#include "ops/shape/joining.h"

namespace caldera::bench {
namespace {

// ---- Element-wise ---------------------------------------------------------------------------------------

/// Eight operations, none of them costly: what counts is how often memory is crossed.
LazyTensor chain_of_eight(const LazyTensor& x) {
  LazyTensor y = x;
  for (int i = 0; i < 4; ++i) y = y * 1.0625 + 0.25;
  return y;
}

void add_elementwise(std::vector<Case>& cases) {
  const Shape large{std::int64_t{4} << 20};
  const double n = static_cast<double>(large.numel());
  const auto unary = [&](const std::string& name, double flops, TensorFunction function) {
    add(cases, {.name = "elementwise/" + name,
                .operands = {large},
                .function = std::move(function),
                .peer = name,
                .flops = flops * n});
  };
  add(cases, {.name = "elementwise/add",
              .operands = {large, large},
              .function = [](const Tensors& t) { return t[0] + t[1]; },
              .peer = "add",
              .flops = n});
  add(cases, {.name = "elementwise/mul",
              .operands = {large, large},
              .function = [](const Tensors& t) { return t[0] * t[1]; },
              .peer = "mul",
              .flops = n});
  unary("scale", 1, [](const Tensors& t) { return t[0] * 1.5; });
  unary("exp", 1, [](const Tensors& t) { return exp(t[0]); });
  unary("tanh", 1, [](const Tensors& t) { return tanh(t[0]); });
  unary("sigmoid", 1, [](const Tensors& t) { return sigmoid(t[0]); });
  unary("gelu", 5, [](const Tensors& t) { return gelu(t[0]); });
  unary("silu", 2, [](const Tensors& t) { return silu(t[0]); });
  unary("chain8", 8, [](const Tensors& t) { return chain_of_eight(t[0]); });
  add_both(cases,
           {.name = "elementwise/swiglu",
            .operands = {{1024, 2048}, {1024, 2048}},
            .function = [](const Tensors& t) { return silu(t[0]) * t[1]; },
            .peer = "swiglu",
            .flops = 3.0 * 1024 * 2048},
           2, 8.0 * 1024 * 2048);
  add(cases, {.name = "elementwise/row_broadcast",
              .operands = {{4096, 1024}, {1024}},
              .function = [](const Tensors& t) { return t[0] + t[1]; },
              .peer = "add",
              .flops = n});
  add(cases, {.name = "elementwise/column_broadcast",
              .operands = {{4096, 1024}, {4096, 1}},
              .function = [](const Tensors& t) { return t[0] + t[1]; },
              .peer = "add",
              .flops = n});
}

// ---- Reductions and rows --------------------------------------------------------------------------------

void add_reductions(std::vector<Case>& cases) {
  const Shape matrix{4096, 1024};
  const double n = static_cast<double>(matrix.numel());
  const auto reduction = [&](const std::string& name, const std::string& peer, nlohmann::json parameters,
                             TensorFunction function) {
    add(cases, {.name = "reduce/" + name,
                .operands = {matrix},
                .function = std::move(function),
                .peer = peer,
                .parameters = std::move(parameters),
                .flops = n});
  };
  reduction("sum_rows", "sum", {{"axis", -1}}, [](const Tensors& t) { return sum(t[0], -1); });
  reduction("sum_columns", "sum", {{"axis", 0}}, [](const Tensors& t) { return sum(t[0], 0); });
  reduction("sum_all", "sum", nlohmann::json::object(), [](const Tensors& t) { return sum(t[0]); });
  reduction("max_rows", "max", {{"axis", -1}}, [](const Tensors& t) { return max(t[0], -1); });
  reduction("max_columns", "max", {{"axis", 0}}, [](const Tensors& t) { return max(t[0], 0); });
  reduction("mean_square_all", "mean_square", nlohmann::json::object(),
            [](const Tensors& t) { return mean(square(t[0])); });
}

LazyTensor softmax_by_hand(const LazyTensor& x) {
  const LazyTensor e = exp(x - max(x, -1, true));
  return e / sum(e, -1, true);
}

LazyTensor log_softmax_by_hand(const LazyTensor& x) {
  const LazyTensor shifted = x - max(x, -1, true);
  return shifted - log(sum(exp(shifted), -1, true));
}

LazyTensor rms_norm_by_hand(const LazyTensor& x, const LazyTensor& weight) {
  return x * rsqrt(mean(square(x), -1, true) + kNormEps) * weight;
}

void add_rows(std::vector<Case>& cases) {
  const Shape matrix{1024, 1024};
  const Shape row{1024};
  const double n = static_cast<double>(matrix.numel());
  const TensorFunction softmax_named = [](const Tensors& t) { return softmax(t[0]); };
  const TensorFunction log_softmax_named = [](const Tensors& t) { return log_softmax(t[0]); };
  const TensorFunction rms_norm_named = [](const Tensors& t) { return rms_norm(t[0], kNormEps, t[1]); };

  OpCase op{.name = "softmax/named",
            .operands = {matrix},
            .function = softmax_named,
            .peer = "softmax",
            .flops = 5 * n};
  add_both(cases, op, 1, 4 * n);
  add_both_half(cases, op, 1, 4 * n);
  op.name = "softmax/by_hand";
  op.function = [](const Tensors& t) { return softmax_by_hand(t[0]); };
  op.named = softmax_named;
  op.aim_ratio = 1.03;
  add_both(cases, op, 1, 4 * n);

  op = {.name = "log_softmax/named",
        .operands = {matrix},
        .function = log_softmax_named,
        .peer = "log_softmax",
        .flops = 5 * n};
  add_both(cases, op, 1, 4 * n);
  op.name = "log_softmax/by_hand";
  op.function = [](const Tensors& t) { return log_softmax_by_hand(t[0]); };
  op.named = log_softmax_named;
  add(cases, op);

  op = {.name = "rms_norm/named",
        .operands = {matrix, row},
        .function = rms_norm_named,
        .peer = "rms_norm",
        .flops = 4 * n};
  add_both(cases, op, 2, 9 * n);
  add_both_half(cases, op, 2, 9 * n);
  op.name = "rms_norm/by_hand";
  op.function = [](const Tensors& t) { return rms_norm_by_hand(t[0], t[1]); };
  op.named = rms_norm_named;
  add(cases, op);

  add_both(cases,
           {.name = "layer_norm",
            .operands = {matrix, row, row},
            .function = [](const Tensors& t) { return layer_norm(t[0], kNormEps, t[1], t[2]); },
            .peer = "layer_norm",
            .flops = 7 * n},
           3, 12 * n);
}

/// Rotary embedding: the halves of each head as pairs, turned by an angle of position and pair.
LazyTensor rotary(const LazyTensor& x, const LazyTensor& cosine, const LazyTensor& sine) {
  const std::int64_t half = x.shape(-1) / 2;
  const LazyTensor turned =
      concatenate({-slice(x, -1, half, std::nullopt), slice(x, -1, std::nullopt, half)}, -1);
  return x * cosine + turned * sine;
}

void add_rotary(std::vector<Case>& cases) {
  const Shape heads{4, 8, 512, 64};
  const double n = static_cast<double>(heads.numel());
  add_both(cases,
           {.name = "rotary",
            .operands = {heads, {512, 64}, {512, 64}},
            .function = [](const Tensors& t) { return rotary(t[0], t[1], t[2]); },
            .peer = "rotary",
            .flops = 3 * n},
           1, 3 * n);
}

// ---- Contractions ---------------------------------------------------------------------------------------

OpCase product(const std::string& name, const Shape& a, const Shape& b, double flops, const std::string& peer,
               TensorFunction function) {
  return {.name = "matmul/" + name,
          .operands = {a, b},
          .function = std::move(function),
          .peer = peer,
          .flops = flops,
          .scale = 0.05};
}

void add_contractions(std::vector<Case>& cases) {
  const auto cube = [](double n) { return 2 * n * n * n; };
  const TensorFunction plain = [](const Tensors& t) { return matmul(t[0], t[1]); };
  for (const std::int64_t n : {512, 1024, 2048}) {
    const OpCase op =
        product(fmt::format("{}", n), {n, n}, {n, n}, cube(static_cast<double>(n)), "matmul", plain);
    add(cases, op);
    add_half(cases, op);
  }
  const Shape square_shape{1024, 1024};
  add(cases, product("a_transposed", square_shape, square_shape, cube(1024), "matmul_tn",
                     [](const Tensors& t) { return matmul(transpose(t[0]), t[1]); }));
  add(cases, product("b_transposed", square_shape, square_shape, cube(1024), "matmul_nt",
                     [](const Tensors& t) { return matmul(t[0], transpose(t[1])); }));
  const OpCase row = product("row_by_matrix", {1, 2048}, {2048, 2048}, 2.0 * 2048 * 2048, "matmul", plain);
  add(cases, row);
  add_half(cases, row);
  add(cases, product("thin", {512, 1024}, {1024, 16}, 2.0 * 512 * 1024 * 16, "matmul", plain));
  add(cases, product("batched", {32, 128, 64}, {32, 64, 128}, 2.0 * 32 * 128 * 128 * 64, "matmul", plain));
  add(cases, product("batched_b_transposed", {32, 128, 64}, {32, 128, 64}, 2.0 * 32 * 128 * 128 * 64,
                     "matmul_nt", [](const Tensors& t) { return matmul(t[0], transpose(t[1])); }));
  OpCase gradient = product("512", {512, 512}, {512, 512}, cube(512), "matmul", plain);
  gradient.gradients = 2;
  gradient.gradient_flops = 2 * cube(512);
  add(cases, gradient);
  add_half(cases, gradient);
  add(cases, {.name = "matmul/bias_gelu",
              .operands = {{512, 1024}, {1024, 1024}, {1024}},
              .function = [](const Tensors& t) { return gelu(matmul(t[0], t[1]) + t[2]); },
              .peer = "linear_gelu",
              .flops = 2.0 * 512 * 1024 * 1024 + 6.0 * 512 * 1024,
              .scale = 0.05});
  add(cases, {.name = "matmul/bias_residual",
              .operands = {{512, 1024}, {1024, 1024}, {1024}, {512, 1024}},
              .function = [](const Tensors& t) { return t[3] + (matmul(t[0], t[1]) + t[2]); },
              .peer = "linear_residual",
              .flops = 2.0 * 512 * 1024 * 1024 + 2.0 * 512 * 1024,
              .scale = 0.05});
}

// ---- Attention ------------------------------------------------------------------------------------------

/// Scaled dot products of queries and keys, of which each query sees its own and the earlier ones.
LazyTensor attention(const Tensors& t, bool causal) {
  const LazyTensor& q = t[0];
  LazyTensor scores = matmul(q, transpose(t[1])) * (1 / std::sqrt(static_cast<double>(q.shape(-1))));
  if (causal) {
    const Shape square_shape{q.shape(-2), t[1].shape(-2)};
    const LazyTensor seen =
        iota(square_shape, 0, DType::i32, q.device()) >= iota(square_shape, 1, DType::i32, q.device());
    scores = where(seen, scores, -1e9);
  }
  return matmul(softmax(scores), t[2]);
}

void add_attention(std::vector<Case>& cases) {
  for (const bool causal : {false, true}) {
    for (const std::int64_t length : {128, 1024}) {
      const Shape heads{1, 8, length, 64};
      const double scores = 8.0 * static_cast<double>(length * length);
      // A causal mask leaves half of the products to do.
      const double share = causal ? 0.5 : 1;
      const OpCase op{.name = fmt::format("attention/{}/{}", causal ? "causal" : "full", length),
                      .operands = {heads, heads, heads},
                      .function = [=](const Tensors& t) { return attention(t, causal); },
                      .peer = "attention",
                      .parameters = {{"causal", causal}},
                      .flops = share * scores * (4 * 64 + 5)};
      add_both(cases, op, 3, share * scores * (8 * 64 + 4));
      add_both_half(cases, op, 3, share * scores * (8 * 64 + 4));
    }
  }
}

// ---- Losses, indexing, movement, types ------------------------------------------------------------------

void add_indexed(std::vector<Case>& cases) {
  constexpr std::int64_t kRows = 32000;
  constexpr std::int64_t kWidth = 512;
  constexpr std::int64_t kCount = 4096;
  const double picked = f32_bytes(static_cast<double>(kCount) * kWidth);
  add(cases, {.name = "index/take_rows",
              .operands = {{kRows, kWidth}},
              .function = [](const Tensors& t) { return take(t[0], t[1]); },
              .peer = "take",
              .indices = kCount,
              .index_limit = kRows,
              .bytes = 2 * picked});
  add(cases, {.name = "index/scatter_add_rows",
              .operands = {{kRows, kWidth}, {kCount, kWidth}},
              .function = [](const Tensors& t) { return scatter_add(t[0], t[2], t[1]); },
              .peer = "scatter_add",
              .flops = static_cast<double>(kCount) * kWidth,
              .indices = kCount,
              .index_limit = kRows});
  const Shape logits{512, 4096};
  const double n = static_cast<double>(logits.numel());
  add_both(cases,
           {.name = "loss/cross_entropy",
            .operands = {logits},
            .function = [](const Tensors& t) { return mean_cross_entropy(t[0], t[1]); },
            .peer = "cross_entropy",
            .flops = 4 * n,
            .indices = logits[0],
            .index_limit = logits[1]},
           1, 3 * n);
}

void add_movement(std::vector<Case>& cases) {
  const Shape half{2048, 1024};
  const Shape matrix{2048, 2048};
  const auto move = [&](const std::string& name, std::vector<Shape> operands, const std::string& peer,
                        nlohmann::json parameters, TensorFunction function) {
    add(cases, {.name = name,
                .operands = std::move(operands),
                .function = std::move(function),
                .peer = peer,
                .parameters = std::move(parameters)});
  };
  const nlohmann::json none = nlohmann::json::object();
  move("move/concatenate_rows", {half, half}, "concatenate", {{"axis", 0}},
       [](const Tensors& t) { return concatenate(t, 0); });
  move("move/concatenate_columns", {half, half}, "concatenate", {{"axis", 1}},
       [](const Tensors& t) { return concatenate(t, 1); });
  // A transposed or sliced tensor alone is a view; the addition makes it be read.
  move("move/transpose", {matrix}, "transpose_add", none,
       [](const Tensors& t) { return transpose(t[0]) + 1.0; });
  move("move/swap_heads", {{4, 128, 8, 64}}, "swap_heads_add", none, [](const Tensors& t) {
    return permute_dims(t[0], {0, 2, 1, 3}) + 1.0;
  });
  move("cast/f32_to_f16", {matrix}, "cast", {{"to", "float16"}},
       [](const Tensors& t) { return astype(t[0], DType::f16); });
  move("cast/f32_to_bf16", {matrix}, "cast", {{"to", "bfloat16"}},
       [](const Tensors& t) { return astype(t[0], DType::bf16); });
  move("cast/f32_to_i32", {matrix}, "cast", {{"to", "int32"}},
       [](const Tensors& t) { return astype(t[0], DType::i32); });
}

/// Creation has no operands whose device it could take.
Case random_case() {
  const Shape matrix{2048, 2048};
  Case c;
  c.name = "ops/random/normal";
  c.shape = dims_text(matrix);
  c.bytes = f32_bytes(static_cast<double>(matrix.numel()));
  c.peer = {
      {"op", "randn"}, {"operands", nlohmann::json::array()}, {"shape", dims_json(matrix)}, {"gradients", 0}};
  c.make = [=](Device device) {
    Work work;
    work.build = [=] { return Tensors{random_normal(matrix, 7, DType::f32, device)}; };
    return work;
  };
  return c;
}

}  // namespace

std::vector<Case> ops_suite() {
  std::vector<Case> cases;
  add_elementwise(cases);
  add_reductions(cases);
  add_rows(cases);
  add_rotary(cases);
  add_contractions(cases);
  add_attention(cases);
  add_indexed(cases);
  add_movement(cases);
  add_windowed_and_ordered(cases);
  cases.push_back(random_case());
  return cases;
}

}  // namespace caldera::bench
