// Matrix products: every type, transpose and layout, batches, segments (LoRA), epilogues. Operands of 16 bits
// are multiplied and summed in f32.
#include <span>
#include <string>
#include <vector>

#include "engine/check/doctor/checks.h"
#include "engine/check/reference/kernel_builder.h"
#include "engine/check/reference/row_kernels.h"
#include "engine/check/reference/scalar_limits.h"

namespace caldera::doctor {
namespace {

using reference::floating;
using reference::integer;
using reference::KernelBuilder;
using reference::stored_as;
using reference::view;

constexpr DType kProductTypes[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8};
constexpr DType kHalves[] = {DType::f16, DType::bf16};
constexpr const char* kSums = "an f32 rounding of the largest partial sum at every term";

struct Sizes {
  std::int64_t m, n, k;
};
constexpr Sizes kProductSizes[] = {{1, 1, 1},    {7, 5, 3},    {33, 1, 65},  {1, 33, 65},   {1, 1, 1025},
                                   {65, 33, 70}, {8, 1025, 7}, {64, 64, 64}, {129, 130, 33}};
/// Few rows, and several tiles of most kinds. Compiling kernels is most of the time on a processor, and
/// running those that are made for GPUs: a pinned variant takes all shapes in f32, and these in other types.
constexpr Sizes kFewSizes[] = {{8, 33, 65}, {65, 68, 70}};

/// Sums of k products of numbers below 4: their standard deviation is about 5 sqrt(k).
Allowed allowed_of_product(DType type, std::int64_t k) {
  if (!is_floating(type)) return {{}, "integers: exact"};
  const double ulp = type == DType::f64 ? 1.2e-16 : 6e-8;
  return {{4 * ulp, 16 * ulp * static_cast<double>(k + 1)}, kSums};
}
/// Sums of products of numbers below 1 that pass through functions of slope near 1.
Allowed epilogue_allowed(const Examination& x, std::int64_t k) {
  return {{x.gpu() ? 2e-5 : 1e-6, 2e-6 * static_cast<double>(k + 2)},
          "products as without an epilogue, then exp within 3 + 2 |x| ulp (Vulkan)"};
}

std::string extents(const Sizes& s) { return Shape({s.m, s.n, s.k}).to_string(); }
/// Of a check's name, where the type is not the usual one.
std::string of(DType type) { return type == DType::f32 ? "" : " of " + std::string(name(type)); }

/// A, B and C each as they are or transposed, by the bits of `mode`.
Operand left(int a, const Sizes& s, int mode) {
  return (mode & 1) != 0 ? view(a, {1, 0, s.m}) : view(a, {s.k, 0, 1});
}
Operand right(int b, const Sizes& s, int mode) {
  return (mode & 2) != 0 ? view(b, {0, s.k, 1}) : view(b, {0, 1, s.n});
}
Operand result(int z, const Sizes& s, int mode, std::int64_t offset) {
  return (mode & 4) != 0 ? view(z, {1, s.m, 0}, offset) : view(z, {s.n, 1, 0}, offset);
}

/// `left_type`, `right_type`: in memory.
void check_transposes(Examination& x, DType left_type, DType right_type) {
  const DType type = compute_type(left_type);
  const std::string types =
      std::string(name(left_type)) + (left_type != right_type ? " by " + std::string(name(right_type)) : "");
  const bool few = x.on_pinned_variant() && right_type != DType::f32;
  for (const Sizes& s : few ? std::span<const Sizes>(kFewSizes) : kProductSizes) {
    PlanCase plan(x.device(), 3);
    const int a = plan.input(left_type, s.m * s.k);
    const int b = plan.input(right_type, s.k * s.n);
    const int z = plan.output(type, 8 * s.m * s.n);
    for (int mode = 0; mode < 8; ++mode)
      plan.contract(type, {s.m, s.n, s.k},
                    {left(a, s, mode), right(b, s, mode), result(z, s, mode, mode * s.m * s.n)});
    x.compare("product of " + types + ", " + extents(s), plan, allowed_of_product(type, s.k));
  }
}

void check_types(Examination& x) {
  for (DType type : kProductTypes) {
    if (x.supports(type))
      check_transposes(x, type, type);
    else
      x.skip("products of " + std::string(name(type)), "the device lacks the type");
  }
  for (DType type : kHalves) {
    if (!x.supports(type)) {
      x.skip("products of " + std::string(name(type)), "the device lacks the type");
      continue;
    }
    check_transposes(x, type, type);
  }
  // Activations by frozen weights.
  if (x.supports(DType::bf16)) check_transposes(x, DType::f32, DType::bf16);
}

/// Rows of wider matrices, every other element, backwards, one row for all, one column for all.
void check_product_layouts(Examination& x) {
  const std::int64_t size = 40;
  const std::int64_t area = size * size;
  PlanCase plan(x.device());
  const int a = plan.input(DType::f32, 4 * area);
  const int b = plan.input(DType::f32, 4 * area);
  const int z = plan.output(DType::f32, 6 * area);
  const Shape dims{size, size, size};
  plan.contract(DType::f32, dims,
                {view(a, {2 * size, 0, 1}, 3), view(b, {0, 1, 2 * size}, 2), view(z, {size, 1, 0})});
  plan.contract(DType::f32, dims,
                {view(a, {2 * size, 0, 2}), view(b, {0, 2, 2 * size}), view(z, {2 * size, 2, 0}, area)});
  plan.contract(DType::f32, dims,
                {view(a, {-size, 0, 1}, area - size), view(b, {0, -1, size}, size - 1),
                 view(z, {size, 1, 0}, 3 * area)});
  plan.contract(DType::f32, dims, {view(a, {0, 0, 1}), view(b, {0, 0, 1}), view(z, {1, size, 0}, 4 * area)});
  plan.contract(DType::f32, {1, size, size},
                {view(a, {7, 0, 3}), view(b, {0, size, 1}), view(z, {5, 2, 0}, 5 * area)});
  x.compare("product of strided, reversed and broadcast matrices", plan,
            allowed_of_product(DType::f32, size));
}

void check_batches(Examination& x) {
  for (std::int64_t t : {1, 6, 40}) {
    const std::int64_t d = 24;
    const std::int64_t e = 30;
    PlanCase plan(x.device());
    const int in = plan.input(DType::f32, 2 * 3 * t * d);
    const int w = plan.input(DType::f32, 2 * 3 * d * e);
    const int z = plan.output(DType::f32, 4 * 2 * 3 * t * e);
    const std::int64_t out = 6 * t * e;
    const Shape dims{2, 3, t, e, d};
    const auto add = [&](const Operand& left, const Operand& right, const Operand& stored) {
      plan.contract(DType::f32, dims, {left, right, stored});
    };
    add(view(in, {3 * t * d, t * d, d, 0, 1}), view(w, {0, 0, 0, 1, e}),
        view(z, {3 * t * e, t * e, e, 1, 0}));
    add(view(in, {3 * t * d, t * d, d, 0, 1}), view(w, {d * e, 0, 0, 1, e}),
        view(z, {3 * t * e, t * e, e, 1, 0}, out));
    add(view(in, {0, t * d, d, 0, 1}), view(w, {0, d * e, 0, 1, e}),
        view(z, {3 * t * e, t * e, e, 1, 0}, 2 * out));
    // Heads as attention lays them out: the batch is between the rows and the columns.
    add(view(in, {3 * t * d, d, 3 * d, 0, 1}), view(w, {3 * d * e, d * e, 0, d, 1}),
        view(z, {3 * t * e, e, 3 * e, 1, 0}, 3 * out));
    x.compare("product of batches, " + std::to_string(t) + " rows", plan, allowed_of_product(DType::f32, d));
  }
}

void check_empty(Examination& x) {
  PlanCase plan(x.device());
  const int a = plan.input(DType::f32, 12);
  const int b = plan.input(DType::f32, 12);
  const int z = plan.output(DType::f32, 24);
  plan.contract(DType::f32, {3, 4, 0}, {view(a, {0, 0, 1}), view(b, {0, 1, 4}), view(z, {4, 1, 0})});
  plan.contract(DType::f32, {0, 4, 3}, {view(a, {3, 0, 1}), view(b, {0, 1, 4}), view(z, {4, 1, 0})});
  plan.contract(DType::f32, {2, 3, 0}, {view(a, {0, 0, 1}), view(b, {0, 1, 4}), view(z, {1, 2, 0}, 12)});
  x.compare("product of nothing", plan, {{}, "zeros: exact"});
}

/// silu(P + bias) + residual; the residual and the result are `memory`.
std::shared_ptr<const Kernel> bias_silu_residual(DType memory) {
  KernelBuilder b("bias+silu+residual");
  const auto p = b.op(ScalarOp::add, b.load(DType::f32), b.load(DType::f32));
  const auto activated = b.op(ScalarOp::mul, p, b.op(ScalarOp::sigmoid, p));
  return b.store(b.op(ScalarOp::add, activated, b.load(memory)), memory).finish();
}

/// All matrices in `memory`.
void check_epilogues(Examination& x, DType memory) {
  const auto epilogue = bias_silu_residual(memory);
  constexpr Sizes kAll[] = {{1, 130, 65}, {33, 65, 7}, {64, 64, 64}, {130, 65, 33}, {3, 4, 0}};
  for (const Sizes& s : is_half(memory) ? std::span<const Sizes>(kFewSizes) : kAll) {
    PlanCase plan(x.device());
    const int a = plan.input(memory, s.m * s.k, {-1, 1});
    const int b = plan.input(memory, s.k * s.n, {-1, 1});
    const int bias = plan.input(DType::f32, s.n);
    const int residual = plan.input(memory, s.m * s.n);
    const int z = plan.output(memory, 8 * s.m * s.n);
    for (int mode = 0; mode < 8; ++mode)
      plan.contract(DType::f32, {s.m, s.n, s.k},
                    {left(a, s, mode), right(b, s, mode), view(bias, {0, 1, 0}), result(residual, s, mode, 0),
                     result(z, s, mode, mode * s.m * s.n)},
                    epilogue);
    x.compare("product" + of(memory) + " with bias, SiLU and residual, " + extents(s), plan,
              stored_as(memory, epilogue_allowed(x, s.k)));
  }
}

/// silu(x G) * (x U): the second product's epilogue reads what the first's stored at the same element, in one
/// dispatch.
void check_following(Examination& x) {
  KernelBuilder first("silu");
  const auto gate = first.load(DType::f32);
  const auto silu = first.store(first.op(ScalarOp::mul, gate, first.op(ScalarOp::sigmoid, gate))).finish();
  KernelBuilder second("multiply");
  const auto up = second.load(DType::f32);
  const auto multiply = second.store(second.op(ScalarOp::mul, up, second.load(DType::f32))).finish();
  for (const Sizes& s : kFewSizes) {
    PlanCase plan(x.device());
    const int in = plan.input(DType::f32, s.m * s.k, {-1, 1});
    const int g = plan.input(DType::f32, s.n * s.k, {-1, 1}), u = plan.input(DType::f32, s.n * s.k, {-1, 1});
    const int gated = plan.output(DType::f32, s.m * s.n), z = plan.output(DType::f32, s.m * s.n);
    const Operand rows = view(in, {s.k, 0, 1}), between = view(gated, {s.n, 1, 0});
    plan.contract(DType::f32, {s.m, s.n, s.k}, {rows, view(g, {0, s.k, 1}), between}, silu);
    plan.contract(DType::f32, {s.m, s.n, s.k}, {rows, view(u, {0, s.k, 1}), between, view(z, {s.n, 1, 0})},
                  multiply);
    plan.follow();
    x.compare("product that follows another, " + extents(s), plan, epilogue_allowed(x, 4 * s.k));
  }
}

/// Regions at the end of products' dispatches: a norm of rows, then sums of columns, each read by the next
/// product; and two norms after two products side by side.
void check_finishing(Examination& x) {
  const auto norm = reference::rms_norm_kernel(DType::f32);
  KernelBuilder sums("sums of squares");
  const auto loaded = sums.load(DType::f32);
  const auto sum = sums.op(ScalarOp::row_sum, sums.op(ScalarOp::mul, loaded, loaded));
  const auto column_sums = sums.store(sum).finish();
  constexpr Sizes kOnes[] = {{1, 130, 65}, {8, 64, 64}, {33, 40, 300}};
  for (const Sizes& s : kOnes) {
    PlanCase plan(x.device());
    const int a = plan.input(DType::f32, s.m * s.k, {-1, 1}), b = plan.input(DType::f32, s.k * s.n, {-1, 1});
    const int c = plan.input(DType::f32, s.n * s.k, {-1, 1}),
              weights = plan.input(DType::f32, s.n + s.k, {0.5, 1});
    const int h = plan.output(DType::f32, 3 * s.m * s.n), normed = plan.output(DType::f32, 3 * s.m * s.n);
    const int rows = plan.output(DType::f32, 3 * s.m), next = plan.output(DType::f32, s.m * s.k),
              total = plan.output(DType::f32, s.k);
    const int share = plan.scalar(DType::f32, reference::floating(1 / static_cast<double>(s.n)));
    const int epsilon = plan.scalar(DType::f32, reference::floating(1e-3));
    const auto product = [&](std::int64_t number) {
      plan.contract(DType::f32, {s.m, s.n, s.k},
                    {view(a, {s.k, 0, 1}), view(b, {0, s.k, 1}), view(h, {s.n, 1, 0}, number * s.m * s.n)});
    };
    const auto norm_of = [&](std::int64_t number) {
      const std::int64_t first = number * s.m * s.n;
      plan.region(norm, {s.m, s.n},
                  {view(h, {s.n, 1}, first), view(weights, {0, 1}), view(normed, {s.n, 1}, first),
                   view(rows, {1, 0}, number * s.m)},
                  1)
          .scalars = {share, epsilon};
    };
    product(0);
    norm_of(0);
    plan.finish();
    plan.contract(DType::f32, {s.m, s.k, s.n},
                  {view(normed, {s.n, 0, 1}), view(c, {0, s.n, 1}), view(next, {s.k, 1, 0})});
    plan.region(column_sums, {s.k, s.m}, {view(next, {1, s.k}), view(total, {1, 0})}, 1);
    plan.finish();
    product(1);
    product(2);
    plan.join();
    norm_of(1);
    plan.finish();
    norm_of(2);
    plan.join();
    x.compare("regions at the end of products, " + extents(s), plan, epilogue_allowed(x, 4 * (s.k + s.n)));
  }
}

/// An epilogue that follows coordinates and draws random numbers: a causal mask with dropout.
void check_coordinates(Examination& x) {
  if (!x.supports(DType::i64)) return x.skip("product with mask and dropout", "the device lacks i64");
  KernelBuilder b("mask_dropout");
  const auto seed = b.scalar(DType::i64);
  const auto keep = b.scalar(DType::f32);
  const auto p = b.load(DType::f32);
  const auto column = b.index();
  const auto masked = b.op(ScalarOp::select, b.op(ScalarOp::less_equal, column, b.index()), p, keep);
  const auto dice = b.philox(ScalarOp::philox_uniform, DType::f32, seed, b.index());
  const auto kept = b.cast(b.op(ScalarOp::less, dice, keep), DType::f32);
  const auto epilogue = b.store(b.op(ScalarOp::mul, masked, kept)).finish();
  const Sizes s{33, 65, 33};
  PlanCase plan(x.device());
  const int in = plan.input(DType::f32, 2 * s.m * s.k, {-1, 1});
  const int w = plan.input(DType::f32, 2 * s.k * s.n, {-1, 1});
  const int z = plan.output(DType::f32, 2 * s.m * s.n);
  plan.scalar(DType::i64, integer(99));
  plan.scalar(DType::f32, floating(0.625));
  plan.contract(
      DType::f32, {2, s.m, s.n, s.k},
      {view(in, {s.m * s.k, s.k, 0, 1}), view(w, {s.k * s.n, 0, 1, s.n}), view(-1, {0, 0, 1, 0}),
       view(-1, {0, 1, 0, 0}, 2), view(-1, {s.m * s.n, s.n, 1, 0}), view(z, {s.m * s.n, s.n, 1, 0})},
      epilogue);
  x.compare("product with mask and dropout", plan, epilogue_allowed(x, s.k));
}

/// x W + scale (x A) B, with a bias and without an epilogue; x and W in `memory`, and A and B too in f16.
void check_segments(Examination& x, DType memory) {
  KernelBuilder builder("bias");
  const auto product = builder.load(DType::f32);
  const auto epilogue = builder.store(builder.op(ScalarOp::add, product, builder.load(DType::f32))).finish();
  const DType trained = memory == DType::f16 ? memory : DType::f32;
  for (const Sizes& s : {Sizes{1, 130, 65}, Sizes{33, 65, 7}, Sizes{130, 65, 33}}) {
    for (std::int64_t rank : {0, 1, 8, 33}) {
      if (is_half(memory) && (s.m == 1 || rank < 8)) continue;
      PlanCase plan(x.device());
      const int in = plan.input(memory, s.m * s.k, {-1, 1});
      const int w = plan.input(memory, s.k * s.n, {-1, 1});
      const int low = plan.input(trained, s.m * rank, {-1, 1});
      const int high = plan.input(trained, rank * s.n, {-1, 1});
      const int bias = plan.input(DType::f32, s.n);
      const int with_bias = plan.output(DType::f32, s.m * s.n);
      const int plain = plan.output(DType::f32, s.m * s.n);
      const int scale = plan.scalar(DType::f32, floating(1.5));
      plan.contract(DType::f32, {s.m, s.n, s.k},
                    {view(in, {s.k, 0, 1}), view(w, {0, s.k, 1}), view(low, {rank, 0, 1}),
                     view(high, {0, rank, 1}), view(bias, {0, 1, 0}), view(with_bias, {s.n, 1, 0})},
                    epilogue, {{.k = rank, .scale = scale}});
      plan.contract(DType::f32, {s.m, s.n, s.k},
                    {view(in, {s.k, 0, 1}), view(w, {0, 1, s.n}), view(low, {1, 0, s.m}),
                     view(high, {0, 1, s.n}), view(plain, {s.n, 1, 0})},
                    nullptr, {{.k = rank, .scale = scale}});
      x.compare("LoRA" + of(memory) + " of rank " + std::to_string(rank) + ", " + extents(s), plan,
                epilogue_allowed(x, s.k + rank));
    }
  }
}

}  // namespace

void check_products(Examination& x) {
  check_types(x);
  check_product_layouts(x);
  check_batches(x);
  check_empty(x);
  check_coordinates(x);
  check_finishing(x);
  check_following(x);
  std::vector<DType> memory_types{DType::f32};
  for (DType type : x.supported(kHalves)) memory_types.push_back(type);
  for (DType memory : memory_types) {
    check_epilogues(x, memory);
    check_segments(x, memory);
  }
}

}  // namespace caldera::doctor
