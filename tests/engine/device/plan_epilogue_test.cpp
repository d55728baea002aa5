// Contractions with segments and epilogues, of hand-built plans, against the reference.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

class PlanEpilogue : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  bool supports(DType type) const { return shared_backend(GetParam()).supports(type); }
  /// Of sums of k products of numbers below 4 that pass through functions of slope near 1.
  Tolerance tolerance(std::int64_t k) const {
    const double ulp = 6e-8;
    return {GetParam().kind == DeviceKind::vulkan ? 2e-5 : 16 * ulp, 32 * ulp * static_cast<double>(k + 2)};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, PlanEpilogue, ::testing::ValuesIn(tested_devices()), device_test_name);

constexpr DType kEpilogueType = DType::f32;

struct Sizes {
  std::int64_t m, n, k;
  std::string text() const { return Shape({m, n, k}).to_string(); }
};

constexpr Sizes kSizes[] = {{1, 1, 1},   {1, 7, 33},   {7, 1, 33},   {1, 130, 65},  {130, 1, 7},   {7, 7, 1},
                            {33, 65, 7}, {65, 33, 65}, {64, 64, 64}, {130, 65, 33}, {33, 130, 130}};

/// silu(P + bias) + residual
std::shared_ptr<const Kernel> bias_silu_residual() {
  KernelBuilder b("bias+silu+residual");
  const auto product = b.load(kEpilogueType);
  const auto p = b.op(ScalarOp::add, product, b.load(kEpilogueType));
  const auto activated = b.op(ScalarOp::mul, p, b.op(ScalarOp::sigmoid, p));
  return b.store(b.op(ScalarOp::add, activated, b.load(kEpilogueType))).finish();
}

TEST_P(PlanEpilogue, BiasActivationAndResidualOfEveryTranspose) {
  const auto epilogue = bias_silu_residual();
  for (const Sizes& s : kSizes) {
    for (int mode = 0; mode < 8; ++mode) {
      SCOPED_TRACE(s.text() + " mode " + std::to_string(mode));
      PlanCase c(GetParam());
      const int a = c.input(kEpilogueType, s.m * s.k, {-1, 1});
      const int b = c.input(kEpilogueType, s.k * s.n, {-1, 1});
      const int bias = c.input(kEpilogueType, s.n);
      const int residual = c.input(kEpilogueType, s.m * s.n);
      const int z = c.output(kEpilogueType, s.m * s.n);
      c.contract(kEpilogueType, {s.m, s.n, s.k},
                 {(mode & 1) != 0 ? view(a, {1, 0, s.m}) : view(a, {s.k, 0, 1}),
                  (mode & 2) != 0 ? view(b, {0, s.k, 1}) : view(b, {0, 1, s.n}), view(bias, {0, 1, 0}),
                  (mode & 4) != 0 ? view(residual, {1, s.m, 0}) : view(residual, {s.n, 1, 0}),
                  (mode & 4) != 0 ? view(z, {1, s.m, 0}) : view(z, {s.n, 1, 0})},
                 epilogue);
      c.check(tolerance(s.k));
    }
  }
}

/// Operands and outputs in several orders of memory at once; a bias of rows, of one element, from the end.
TEST_P(PlanEpilogue, StridedOperands) {
  const auto epilogue = bias_silu_residual();
  for (const Sizes& s : kSizes) {
    SCOPED_TRACE(s.text());
    PlanCase c(GetParam());
    const int a = c.input(kEpilogueType, 2 * s.m * s.k + 3, {-1, 1});
    const int b = c.input(kEpilogueType, 2 * s.k * s.n + 3, {-1, 1});
    const int bias = c.input(kEpilogueType, s.m + s.n);
    const int residual = c.input(kEpilogueType, 2 * s.m * s.n + 3);
    const int z = c.output(kEpilogueType, 9 * s.m * s.n + 3);
    const Operand left = view(a, {2 * s.k, 0, 1}, 3);
    const Operand right = view(b, {0, 2, 2 * s.n}, 1);
    c.contract(kEpilogueType, {s.m, s.n, s.k},
               {left, right, view(bias, {1, 0, 0}), view(residual, {2 * s.n, 2, 0}, 1), view(z, {1, s.m, 0})},
               epilogue);
    c.contract(kEpilogueType, {s.m, s.n, s.k},
               {left, right, view(bias, {0, 0, 0}, 1), view(residual, {0, 1, 0}, 2),
                view(z, {2 * s.n, 2, 0}, s.m * s.n)},
               epilogue);
    c.contract(kEpilogueType, {s.m, s.n, s.k},
               {left, right, view(bias, {0, -1, 0}, s.n - 1), view(residual, {-s.n, 1, 0}, (s.m - 1) * s.n),
                view(z, {3 * s.n, 2, 0}, 3 * s.m * s.n)},
               epilogue);
    c.check(tolerance(s.k));
  }
}

/// The activated product and the product before it, as gradients want it, scaled by a scalar argument.
TEST_P(PlanEpilogue, SeveralOutputsAndAScale) {
  KernelBuilder b("gelu_with_input");
  const auto p = b.op(ScalarOp::mul, b.load(kEpilogueType), b.scalar(kEpilogueType));
  const auto shifted = b.op(ScalarOp::add, p, b.load(kEpilogueType));
  const auto t = b.op(ScalarOp::tanh, b.op(ScalarOp::mul, shifted, b.scalar(kEpilogueType)));
  const auto epilogue = b.store(b.op(ScalarOp::mul, shifted, t)).store(p).store(shifted).finish();
  for (const Sizes& s : kSizes) {
    SCOPED_TRACE(s.text());
    PlanCase c(GetParam());
    const int x = c.input(kEpilogueType, s.m * s.k, {-1, 1});
    const int w = c.input(kEpilogueType, s.k * s.n, {-1, 1});
    const int bias = c.input(kEpilogueType, s.n);
    const int activated = c.output(kEpilogueType, s.m * s.n);
    const int before = c.output(kEpilogueType, s.m * s.n);
    const int transposed = c.output(kEpilogueType, s.m * s.n);
    c.scalar(DType::i32, integer(7));
    c.scalar(kEpilogueType, floating(0.125));
    c.scalar(kEpilogueType, floating(0.75));
    c.contract(kEpilogueType, {s.m, s.n, s.k},
               {view(x, {s.k, 0, 1}), view(w, {0, 1, s.n}), view(bias, {0, 1, 0}),
                view(activated, {s.n, 1, 0}), view(before, {s.n, 1, 0}), view(transposed, {1, s.m, 0})},
               epilogue)
        .scalars = {1, 2};
    c.check(tolerance(s.k));
  }
}

TEST_P(PlanEpilogue, OutputsOfOtherTypes) {
  KernelBuilder b("casts");
  const auto p = b.load(kEpilogueType);
  const auto limit = b.load(DType::i32);
  const auto mask = b.load(DType::boolean);
  const auto whole = b.cast(p, DType::i32);
  const auto epilogue = b.store(b.op(ScalarOp::add, whole, limit))
                            .store(b.op(ScalarOp::greater, whole, limit))
                            .store(p, DType::u8)
                            .store(b.op(ScalarOp::select, mask, p, b.op(ScalarOp::neg, p)))
                            .finish();
  for (const Sizes& s : kSizes) {
    SCOPED_TRACE(s.text());
    PlanCase c(GetParam());
    const int x = c.input(kEpilogueType, s.m * s.k, {-9, 9, true});
    const int w = c.input(kEpilogueType, s.k * s.n, {-9, 9, true});
    const int limits = c.input(DType::i32, s.m);
    const int masks = c.input(DType::boolean, s.m * s.n);
    const int sums = c.output(DType::i32, s.m * s.n);
    const int above = c.output(DType::boolean, s.m * s.n);
    const int bytes = c.output(DType::u8, s.m * s.n);
    const int signs = c.output(kEpilogueType, s.m * s.n);
    c.contract(kEpilogueType, {s.m, s.n, s.k},
               {view(x, {s.k, 0, 1}), view(w, {0, 1, s.n}), view(limits, {1, 0, 0}), view(masks, {s.n, 1, 0}),
                view(sums, {s.n, 1, 0}), view(above, {s.n, 1, 0}), view(bytes, {s.n, 1, 0}),
                view(signs, {s.n, 1, 0})},
               epilogue);
    c.check();  // whole numbers below 2^24: exact
  }
}

TEST_P(PlanEpilogue, IntegerAndWideProducts) {
  for (DType type : {DType::i32, DType::i64, DType::u8, DType::f64}) {
    if (!supports(type)) continue;
    KernelBuilder b("add_and_cast");
    const auto product = b.load(type);
    const auto sum = b.op(ScalarOp::add, product, b.load(type));
    const auto epilogue = b.store(sum).store(sum, kEpilogueType).finish();
    for (const Sizes& s : kSizes) {
      SCOPED_TRACE(std::string(name(type)) + " " + s.text());
      PlanCase c(GetParam());
      const int x = c.input(type, s.m * s.k);
      const int w = c.input(type, s.k * s.n);
      const int low = c.input(type, s.m * 3);
      const int high = c.input(type, s.n * 3);
      const int bias = c.input(type, s.n);
      const int z = c.output(type, s.m * s.n);
      const int real = c.output(kEpilogueType, s.m * s.n);
      const int scale = c.scalar(type, {0.75, 3});
      c.contract(type, {s.m, s.n, s.k},
                 {view(x, {s.k, 0, 1}), view(w, {0, 1, s.n}), view(low, {3, 0, 1}), view(high, {0, 3, 1}),
                  view(bias, {0, 1, 0}), view(z, {s.n, 1, 0}), view(real, {s.n, 1, 0})},
                 epilogue, {{.k = 3, .scale = scale}});
      c.check(type == DType::f64 ? Tolerance{2e-7, 2e-14 * static_cast<double>(s.k + 2)} : Tolerance{});
    }
  }
}

/// (batch, m, k) @ (k, n), (batch, m, k) @ (batch, k, n), grouped: b is shared among some of the batch.
TEST_P(PlanEpilogue, Batches) {
  const auto epilogue = bias_silu_residual();
  for (const Sizes& s : {Sizes{1, 7, 33}, Sizes{33, 30, 24}, Sizes{40, 65, 7}, Sizes{7, 1, 5}}) {
    SCOPED_TRACE(s.text());
    const std::int64_t out = 6 * s.m * s.n;
    const std::int64_t mk = s.m * s.k;
    const std::int64_t kn = s.k * s.n;
    const std::int64_t mn = s.m * s.n;
    PlanCase c(GetParam());
    const int x = c.input(kEpilogueType, 6 * mk, {-1, 1});
    const int w = c.input(kEpilogueType, 6 * kn, {-1, 1});
    const int bias = c.input(kEpilogueType, 3 * s.n);
    const int residual = c.input(kEpilogueType, out);
    const int z = c.output(kEpilogueType, 4 * out);
    const Shape dims{2, 3, s.m, s.n, s.k};
    c.contract(kEpilogueType, dims,
               {view(x, {3 * mk, mk, s.k, 0, 1}), view(w, {0, 0, 0, 1, s.n}), view(bias, {0, 0, 0, 1, 0}),
                view(residual, {3 * mn, mn, s.n, 1, 0}), view(z, {3 * mn, mn, s.n, 1, 0})},
               epilogue);
    c.contract(
        kEpilogueType, dims,
        {view(x, {3 * mk, mk, s.k, 0, 1}), view(w, {3 * kn, kn, 0, 1, s.n}), view(bias, {0, s.n, 0, 1, 0}),
         view(residual, {0, mn, s.n, 1, 0}), view(z, {3 * mn, mn, s.n, 1, 0}, out)},
        epilogue);
    c.contract(kEpilogueType, dims,
               {view(x, {0, mk, s.k, 0, 1}), view(w, {kn, 0, 0, s.k, 1}), view(bias, {s.n, 0, 0, 1, 0}),
                view(residual, {mn, 0, s.n, 1, 0}), view(z, {3 * mn, mn, s.n, 1, 0}, 2 * out)},
               epilogue);
    // The batch between rows and columns, as heads lie.
    c.contract(kEpilogueType, dims,
               {view(x, {3 * mk, s.k, 3 * s.k, 0, 1}), view(w, {3 * kn, s.n, 0, 1, 3 * s.n}),
                view(bias, {0, s.n, 0, 1, 0}), view(residual, {3 * mn, s.n, 3 * s.n, 1, 0}),
                view(z, {3 * mn, s.n, 3 * s.n, 1, 0}, 3 * out)},
               epilogue);
    c.check(tolerance(s.k));
  }
}

/// x W + scale (x A) B with bias, the weight transposed or not; without an epilogue too.
TEST_P(PlanEpilogue, Lora) {
  KernelBuilder b("bias");
  const auto product = b.load(kEpilogueType);
  const auto epilogue = b.store(b.op(ScalarOp::add, product, b.load(kEpilogueType))).finish();
  for (const Sizes& s : kSizes) {
    for (std::int64_t rank : {0, 1, 8, 33}) {
      SCOPED_TRACE(s.text() + " rank " + std::to_string(rank));
      PlanCase c(GetParam());
      const int x = c.input(kEpilogueType, s.m * s.k, {-1, 1});
      const int w = c.input(kEpilogueType, s.k * s.n, {-1, 1});
      const int low = c.input(kEpilogueType, s.m * rank, {-1, 1});
      const int high = c.input(kEpilogueType, rank * s.n, {-1, 1});
      const int bias = c.input(kEpilogueType, s.n);
      const int z = c.output(kEpilogueType, s.m * s.n);
      const int plain = c.output(kEpilogueType, s.m * s.n);
      c.scalar(kEpilogueType, floating(11));
      const int scale = c.scalar(kEpilogueType, floating(1.5));
      c.contract(kEpilogueType, {s.m, s.n, s.k},
                 {view(x, {s.k, 0, 1}), view(w, {0, s.k, 1}), view(low, {rank, 0, 1}),
                  view(high, {0, rank, 1}), view(bias, {0, 1, 0}), view(z, {s.n, 1, 0})},
                 epilogue, {{.k = rank, .scale = scale}});
      c.contract(kEpilogueType, {s.m, s.n, s.k},
                 {view(x, {s.k, 0, 1}), view(w, {0, 1, s.n}), view(low, {1, 0, s.m}), view(high, {0, 1, s.n}),
                  view(plain, {s.n, 1, 0})},
                 nullptr, {{.k = rank, .scale = scale}});
      c.check(tolerance(s.k + rank));
    }
  }
}

/// Three segments of different lengths in a batch, the first scaled too, one of them empty.
TEST_P(PlanEpilogue, SeveralSegments) {
  KernelBuilder b("halve");
  const auto epilogue = b.store(b.op(ScalarOp::mul, b.load(kEpilogueType), b.scalar(kEpilogueType))).finish();
  for (const Sizes& s : {Sizes{7, 9, 33}, Sizes{33, 65, 0}, Sizes{1, 65, 64}, Sizes{70, 1, 5}}) {
    for (bool with_epilogue : {false, true}) {
      SCOPED_TRACE(s.text() + (with_epilogue ? " epilogue" : ""));
      PlanCase c(GetParam());
      const std::int64_t batch = 3;
      const std::int64_t second = 20;
      const std::int64_t third = 5;
      const int a0 = c.input(kEpilogueType, batch * s.m * s.k, {-1, 1});
      const int b0 = c.input(kEpilogueType, s.k * s.n, {-1, 1});
      const int a1 = c.input(kEpilogueType, s.m * second, {-1, 1});
      const int b1 = c.input(kEpilogueType, batch * second * s.n, {-1, 1});
      const int a2 = c.input(kEpilogueType, batch * s.m * third, {-1, 1});
      const int b2 = c.input(kEpilogueType, batch * third * s.n, {-1, 1});
      const int z = c.output(kEpilogueType, batch * s.m * s.n);
      const int half = c.scalar(kEpilogueType, floating(0.5));
      const int minus = c.scalar(kEpilogueType, floating(-2));
      Step& step =
          c.contract(kEpilogueType, {batch, s.m, s.n, s.k},
                     {view(a0, {s.m * s.k, s.k, 0, 1}), view(b0, {0, 0, 1, s.n}), view(a1, {0, 1, 0, s.m}),
                      view(b1, {second * s.n, 0, 1, s.n}), view(a2, {s.m * third, third, 0, 1}),
                      view(b2, {third * s.n, 0, third, 1}), view(z, {s.m * s.n, s.n, 1, 0})},
                     with_epilogue ? epilogue : nullptr, {{.k = second}, {.k = third, .scale = minus}});
      step.as<ContractStep>().segments[0].scale = minus;
      if (with_epilogue) step.scalars = {half};
      c.check(tolerance(2 * s.k + second + 2 * third));
    }
  }
}

/// Nothing to multiply: the epilogue runs on zeros.
TEST_P(PlanEpilogue, EmptyProducts) {
  const auto epilogue = bias_silu_residual();
  for (const Sizes& s : {Sizes{3, 4, 0}, Sizes{0, 4, 3}, Sizes{4, 0, 3}, Sizes{1, 70, 0}, Sizes{70, 65, 0}}) {
    SCOPED_TRACE(s.text());
    PlanCase c(GetParam());
    const int a = c.input(kEpilogueType, 12);
    const int b = c.input(kEpilogueType, 12);
    const int bias = c.input(kEpilogueType, 70);
    const int residual = c.input(kEpilogueType, 70 * 65);
    const int z = c.output(kEpilogueType, 70 * 65);
    c.contract(kEpilogueType, {s.m, s.n, s.k},
               {view(a, {s.k, 0, 1}), view(b, {0, 1, s.n}), view(bias, {0, 1, 0}),
                view(residual, {s.n, 1, 0}), view(z, {s.n, 1, 0})},
               epilogue);
    c.check(tolerance(0));
  }
}

/// A causal mask on scores, random numbers for dropout: both follow from coordinates.
TEST_P(PlanEpilogue, Coordinates) {
  KernelBuilder b("mask_dropout");
  const auto seed = b.scalar(DType::i64);
  const auto keep = b.scalar(kEpilogueType);
  const auto p = b.load(kEpilogueType);
  const auto column = b.index();
  const auto masked = b.op(ScalarOp::select, b.op(ScalarOp::less_equal, column, b.index()), p, keep);
  const auto dice = b.philox(ScalarOp::philox_uniform, kEpilogueType, seed, b.index());
  const auto kept = b.cast(b.op(ScalarOp::less, dice, keep), kEpilogueType);
  const auto epilogue = b.store(b.op(ScalarOp::mul, masked, kept)).finish();
  for (const Sizes& s : kSizes) {
    SCOPED_TRACE(s.text());
    PlanCase c(GetParam());
    const int x = c.input(kEpilogueType, 2 * s.m * s.k, {-1, 1});
    const int w = c.input(kEpilogueType, 2 * s.k * s.n, {-1, 1});
    const int z = c.output(kEpilogueType, 2 * s.m * s.n);
    c.scalar(DType::i64, integer(99));
    c.scalar(kEpilogueType, floating(0.625));
    c.contract(kEpilogueType, {2, s.m, s.n, s.k},
               {view(x, {s.m * s.k, s.k, 0, 1}), view(w, {s.k * s.n, 0, 1, s.n}), view(-1, {0, 0, 1, 0}),
                view(-1, {0, 1, 0, 0}, 2), view(-1, {s.m * s.n, s.n, 1, 0}), view(z, {s.m * s.n, s.n, 1, 0})},
               epilogue);
    c.check(tolerance(s.k));
  }
}

/// The result is stored where the residual was: each element is read just before it is written.
TEST_P(PlanEpilogue, InThePlaceOfTheResidual) {
  const auto epilogue = bias_silu_residual();
  const auto copy = one_op_kernel(ScalarOp::neg, kEpilogueType, kEpilogueType);
  for (const Sizes& s : kSizes) {
    for (bool transposed : {false, true}) {
      SCOPED_TRACE(s.text() + (transposed ? " transposed" : ""));
      PlanCase c(GetParam());
      const int a = c.input(kEpilogueType, s.m * s.k, {-1, 1});
      const int b = c.input(kEpilogueType, s.k * s.n, {-1, 1});
      const int low = c.input(kEpilogueType, s.m * 8, {-1, 1});
      const int high = c.input(kEpilogueType, s.n * 8, {-1, 1});
      const int bias = c.input(kEpilogueType, s.n);
      const int residual = c.input(kEpilogueType, s.m * s.n);
      const int z = c.output(kEpilogueType, s.m * s.n);
      const int old = c.arena(kEpilogueType, s.m * s.n);
      const int sum = c.arena(kEpilogueType, s.m * s.n);
      c.plan().buffers[static_cast<std::size_t>(sum)].arena_offset =
          c.plan().buffers[static_cast<std::size_t>(old)].arena_offset;
      const Operand place = transposed ? view(old, {1, s.m, 0}) : view(old, {s.n, 1, 0});
      Operand result = place;
      result.buffer = sum;
      c.region(copy, {s.m * s.n}, {view(residual, {1}), view(old, {1})});
      c.contract(kEpilogueType, {s.m, s.n, s.k},
                 {view(a, {s.k, 0, 1}), view(b, {0, s.k, 1}), view(low, {8, 0, 1}), view(high, {0, 8, 1}),
                  view(bias, {0, 1, 0}), place, result},
                 epilogue, {{.k = 8}});
      c.region(copy, {s.m * s.n}, {view(sum, {1}), view(z, {1})});
      c.check(tolerance(s.k + 8));
    }
  }
}

}  // namespace
}  // namespace caldera::testing
