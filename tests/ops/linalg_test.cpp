// Linear algebra beyond what the table expresses: larger matrices against their definitions, conventions,
// what fails and how, gradients at singular and repeated values, and the plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/caldera.h"
#include "engine/check/reference/reference_plan.h"
#include "engine/explain/explanation.h"
#include "engine/plan/verify.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/inspect/explain.h"
#include "engine/testing/gradcheck.h"
#include "ops/linalg/matrix_nodes.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {
namespace {

using Doubles = std::vector<double>;

Doubles doubles(const LazyTensor& x) { return download(x); }

double distance(const LazyTensor& a, const LazyTensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  const Doubles x = doubles(a), y = doubles(b);
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(std::abs(x[i] - y[i]) <= most)) most = std::abs(x[i] - y[i]);
  }
  return most;
}

LazyTensor eye(const LazyTensor& beside, std::int64_t n) {
  return matrix_power(LazyTensor::zeros(Shape{n, n}, beside.dtype(), beside.device()), 0);
}
/// The gradient of a function of one matrix.
LazyTensor gradient_of(const UnaryFunction& function, const LazyTensor& x) {
  return value_and_grad([&](std::span<const LazyTensor> a) { return function(a[0]); }, {&x, 1}).second[0];
}

class Linalg : public OpTest {
 protected:
  LazyTensor random(const Shape& shape, DType type, std::uint64_t seed = 1) const {
    return upload(stored(Host(shape, random_values(shape.numel(), 0.1, 1, true, seed)), type), type,
                  device());
  }
  LazyTensor tensor(const Doubles& values, const Shape& shape, DType type = DType::f32) const {
    return upload(Host(shape, values), type, device());
  }
  std::vector<DType> types() const { return supported({DType::f32, DType::f64}); }
};

double rounding(DType type, std::int64_t n) {
  const double epsilon = type == DType::f64 ? 0x1p-52 : 0x1p-23;
  return epsilon * 8 * static_cast<double>(n);
}

TEST_P(Linalg, FactorsAreWhatTheySay) {
  for (const DType type : types()) {
    for (const Shape& shape : {Shape{33, 33}, Shape{2, 40, 17}, Shape{3, 17, 40}, Shape{7, 1}}) {
      SCOPED_TRACE(std::string(name(type)) + " " + shape.to_string());
      const LazyTensor x = random(shape, type);
      const double within = 4 * rounding(type, 40);
      for (const QrMode mode : {QrMode::reduced, QrMode::complete}) {
        const auto [q, r] = qr(x, mode);
        EXPECT_LE(distance(matmul(q, r), x), within);
        EXPECT_LE(
            distance(matmul(transpose(q), q), zeros_like(matmul(transpose(q), q)) + eye(x, q.shape(-1))),
            within);
        EXPECT_EQ(distance(r, triu(r)), 0);
        for (const double value : doubles(diagonal(r))) EXPECT_GE(value, 0);
      }
      for (const bool full : {false, true}) {
        const auto [u, s, vh] = svd(x, full);
        const std::int64_t p = s.shape(-1);
        const LazyTensor inner = expand_dims(s, -2) * slice(u, -1, 0, p);
        EXPECT_LE(distance(matmul(inner, slice(vh, -2, 0, p)), x), within);
        EXPECT_LE(
            distance(matmul(transpose(u), u), zeros_like(matmul(transpose(u), u)) + eye(x, u.shape(-1))),
            within);
        EXPECT_LE(
            distance(matmul(vh, transpose(vh)), zeros_like(matmul(vh, transpose(vh))) + eye(x, vh.shape(-2))),
            within);
        EXPECT_LE(distance(svdvals(x), s), within);
        // The element of each column that is largest in magnitude is positive.
        const LazyTensor columns = slice(u, -1, 0, p);
        EXPECT_EQ(distance(max(abs(columns), -2), max(columns, -2)), 0);
      }
      EXPECT_LE(distance(matmul(matmul(x, pinv(x)), x), x), 10 * within);
      const LazyTensor positive = matmul(x, transpose(x)) + eye(x, shape[shape.rank() - 2]);
      const LazyTensor l = cholesky(positive);
      EXPECT_EQ(distance(l, tril(l)), 0);
      EXPECT_LE(distance(matmul(l, transpose(l)), positive), 40 * within);
      EXPECT_EQ(distance(cholesky(positive, true), transpose(l)), 0);
      EXPECT_LE(distance(matmul(inv(positive), positive), zeros_like(positive) + eye(x, positive.shape(-1))),
                40 * within);
      const auto [w, v] = eigh(positive);
      EXPECT_LE(distance(matmul(positive, v), v * expand_dims(w, -2)), 40 * within);
      EXPECT_LE(distance(eigvalsh(positive), w), 40 * within);
      EXPECT_LE(distance(sum(log(w), -1), slogdet(positive).logabsdet), 40 * within);
      EXPECT_LE(distance(solve_triangular(l, matmul(l, x)), x), 40 * within);
      EXPECT_LE(distance(solve(positive, matmul(positive, x)), x), 40 * within);
    }
  }
}

TEST_P(Linalg, ReadsTheSymmetricPart) {
  const LazyTensor x = tensor({4, 3, 1, 5}, {2, 2});  // symmetric part: 4, 2, 2, 5
  EXPECT_TRUE(agrees(cholesky(x), Host({2, 2}, {2, 0, 1, 2}), {}));
  const LazyTensor y = tensor({0, 3, 1, 0}, {2, 2});  // 0, 2, 2, 0
  EXPECT_TRUE(agrees(eigvalsh(y), Host({2}, {-2, 2}), {1e-6, 1e-6}));
}

TEST_P(Linalg, PromotesTypesAndBroadcastsBatches) {
  if (!supports(DType::f64)) GTEST_SKIP() << "no float64 here";
  const LazyTensor a = tensor({2, 0, 0, 4}, {2, 2}, DType::f32);
  const LazyTensor b = tensor({2, 4, 6, 8}, {2, 2, 1}, DType::f64);
  const LazyTensor x = solve(a, b);
  EXPECT_EQ(x.dtype(), DType::f64);
  EXPECT_TRUE(agrees(x, Host({2, 2, 1}, {1, 1, 3, 2}), {}));
}

TEST_P(Linalg, MatricesWithoutAResultFailTheEvaluationAndNothingElse) {
  const LazyTensor good = tensor({4, 0, 0, 9}, {2, 2});
  const auto message = [](const LazyTensor& x) { return message_of<ValueError>([&] { x.eval(); }); };
  const std::string one = message(cholesky(tensor({1, 2, 2, 1}, {2, 2})));
  EXPECT_MENTIONS(one, "cholesky: the matrix is not positive definite");
  EXPECT_MENTIONS(one, "order 2");
  const LazyTensor batch = tensor({4, 0, 0, 9, 1, 0, 0, 1, 0, 0, 0, 0, -1, 0, 0, 1}, {2, 2, 2, 2});
  EXPECT_MENTIONS(message(cholesky(batch)),
                  "cholesky: the matrix 2 of the batch of 4 is not positive definite");
  EXPECT_MENTIONS(message(inv(batch)), "inv: the matrix 2 of the batch of 4 is singular");
  EXPECT_MENTIONS(message(solve(tensor({1, 2, 2, 4}, {2, 2}), good)),
                  "solve: the matrix is singular: pivot 2");
  EXPECT_MENTIONS(message(solve_triangular(tensor({1, 2, 2, 0}, {2, 2}), good)),
                  "solve_triangular: the matrix is singular");
  EXPECT_MENTIONS(message(matrix_power(batch, -2)),
                  "matrix_power: the matrix 2 of the batch of 4 is singular");
  const EvalFuture future = inv(tensor({0, 0, 0, 0}, {2, 2})).eval_async();
  EXPECT_MENTIONS(message_of<ValueError>([&] { future.get(); }), "inv");
  // What is computed of it fails, too; the engine goes on.
  EXPECT_MENTIONS(message(inv(tensor({0, 0, 0, 0}, {2, 2})) + 1.0), "inv");
  EXPECT_TRUE(agrees(cholesky(good), Host({2, 2}, {2, 0, 0, 3}), {}));
  EXPECT_TRUE(agrees(det(batch), Host({2, 2}, {36, 1, 0, -1}), {}));
}

TEST_P(Linalg, SpecialValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const LazyTensor x = tensor({nan, 1, 1, 2, 2, 0, 0, 2}, {2, 2, 2});  // the second is a matrix like others
  EXPECT_TRUE(agrees(svdvals(x), Host({2, 2}, {nan, nan, 2, 2}), {1e-6}));
  EXPECT_TRUE(agrees(eigvalsh(x), Host({2, 2}, {nan, nan, 2, 2}), {1e-6}));
  EXPECT_TRUE(agrees(inv(x), Host({2, 2, 2}, {nan, nan, nan, nan, 0.5, 0, 0, 0.5}), {}));
  EXPECT_TRUE(agrees(cholesky(tensor({inf}, {1, 1})), Host({1, 1}, {nan}), {}));
  const auto [sign, logarithm] = slogdet(tensor({1, 2, 2, 4}, {2, 2}));
  EXPECT_TRUE(agrees(sign, Host({}, {0}), {}));
  EXPECT_TRUE(agrees(logarithm, Host({}, {-inf}), {}));
  EXPECT_TRUE(agrees(cond(tensor({0, 0, 0, 1}, {2, 2})), Host({}, {inf}), {}));
  const LazyTensor one_singular = tensor({1, 2, 2, 4, 2, 0, 0, 4}, {2, 2, 2});
  EXPECT_TRUE(agrees(cond(one_singular, 1), Host({2}, {inf, 2}), {}));
  EXPECT_TRUE(agrees(cond(one_singular, "fro"), Host({2}, {inf, 2.5}), {1e-6}));
  EXPECT_TRUE(agrees(det(LazyTensor::zeros(Shape{2, 0, 0}, DType::f32, device())), Host({2}, {1, 1}), {}));
  EXPECT_EQ(svd(LazyTensor::zeros(Shape{3, 0}, DType::f32, device())).u.shape(), (Shape{3, 3}));
  EXPECT_EQ(distance(svd(LazyTensor::zeros(Shape{3, 0}, DType::f32, device())).u, eye(x, 3)), 0);
  EXPECT_EQ(distance(qr(LazyTensor::zeros(Shape{3, 0}, DType::f32, device()), QrMode::complete).q, eye(x, 3)),
            0);
  // What counts as 0 does not count.
  EXPECT_TRUE(agrees(pinv(tensor({4, 0, 0, 1}, {2, 2}), 0.5), Host({2, 2}, {0.25, 0, 0, 0}), {0, 1e-6}));
  // A triangular system reads nothing else.
  EXPECT_TRUE(
      agrees(solve_triangular(tensor({1, nan, 1, 1}, {2, 2}), tensor({1, 3}, {2})), Host({2}, {1, 2}), {}));
}

INSTANTIATE_TEST_SUITE_P(Devices, Linalg, ::testing::ValuesIn(op_settings()), op_setting_name);

LazyTensor matrix(const Doubles& values, std::int64_t n) { return cpu_tensor(values, Shape{n, n}); }

TEST(LinalgGradients, OfDeterminantsOfSingularMatrices) {
  const auto gradient = [](const LazyTensor& x) {
    return gradient_of([](const LazyTensor& a) { return det(a); }, x);
  };
  EXPECT_LE(distance(gradient(matrix({1, 2, 2, 4}, 2)), matrix({4, -2, -2, 1}, 2)), 1e-14);
  EXPECT_LE(
      distance(gradient(matrix({2, 0, 0, 0, 3, 0, 0, 0, 0}, 3)), matrix({0, 0, 0, 0, 0, 0, 0, 0, 6}, 3)),
      1e-14);
  EXPECT_EQ(distance(gradient(matrix(Doubles(9, 0), 3)), matrix(Doubles(9, 0), 3)), 0);
  // Of rank 1 less than that, first and second derivatives are polynomials as anywhere else.
  const LazyTensor x = matrix({0, 0, 0, 0}, 2);
  const LazyTensor along = matrix({1, 2, 3, 5}, 2);
  const std::vector<LazyTensor> second =
      hvp([](std::span<const LazyTensor> a) { return det(a[0]); }, {&x, 1}, {&along, 1});
  EXPECT_LE(distance(second[0], matrix({5, -3, -2, 1}, 2)), 1e-14);
}

TEST(LinalgGradients, OfRepeatedValues) {
  const LazyTensor one = matrix({1, 0, 0, 1}, 2);
  EXPECT_LE(distance(gradient_of([](const LazyTensor& a) { return sum(svdvals(a)); }, one), one), 1e-14);
  EXPECT_LE(distance(gradient_of([](const LazyTensor& a) { return sum(eigvalsh(a)); }, one), one), 1e-14);
  EXPECT_LE(distance(gradient_of([](const LazyTensor& a) { return sum(svd(a).s); }, one), one), 1e-14);
  EXPECT_LE(distance(gradient_of([](const LazyTensor& a) { return matrix_norm(a, "nuc"); }, one), one),
            1e-14);
}

TEST(LinalgGradients, ThatAreNone) {
  const LazyTensor tall = cpu_tensor({1, 2, 3, 5, 7, 11}, Shape{3, 2});
  const auto message = [&](LazyTensor (*f)(const LazyTensor&)) {
    return message_of<GradientError>([&] { gradient_of(f, tall); });
  };
  EXPECT_MENTIONS(message([](const LazyTensor& a) { return sum(qr(a, QrMode::complete).q); }),
                  "QrMode::reduced");
  EXPECT_MENTIONS(message([](const LazyTensor& a) { return sum(svd(a).u); }), "full_matrices = false");
}

TEST(LinalgGradients, ThroughWhatDoesNotDependOnSigns) {
  const LazyTensor x = cpu_tensor({3, 1, -1, 2, 5, 4, 0, 1, 2, 2, -3, 1}, Shape{4, 3});
  const VectorFunction rebuilt = [](std::span<const LazyTensor> a) {
    const auto [u, s, vh] = svd(a[0], false);
    return std::vector<LazyTensor>{matmul(u * expand_dims(exp(s * 0.25), -2), vh)};
  };
  EXPECT_TRUE(gradcheck(rebuilt, {&x, 1}, {.forward = true}));
  EXPECT_TRUE(gradgradcheck(rebuilt, {&x, 1}, {.fast = true, .forward = true}));
}

TEST(LinalgVmap, MapsOverDifferentMatrices) {
  const LazyTensor x = cpu_tensor(random_values(3 * 4 * 4, 0.1, 1, true, 7), Shape{3, 4, 4}) +
                       eye(cpu_tensor({0}, {1}), 4) * 3.0;
  const LazyTensor b = cpu_tensor(random_values(4 * 2, 0.1, 1, true, 8), Shape{4, 2});
  const UnaryFunction function = [&](const LazyTensor& a) {
    const auto [q, r] = qr(a);
    const auto [w, v] = eigh(a);
    return concatenate({solve(a, b), q, r, v, inv(a), expand_dims(w, -1), expand_dims(svdvals(a), -1)}, -1);
  };
  const LazyTensor all = vmap(function)(x);
  const UnaryFunction slope = [&](const LazyTensor& a) {
    return gradient_of([&](const LazyTensor& y) { return sum(square(function(y))); }, a);
  };
  const LazyTensor slopes = vmap(slope)(x);
  for (std::int64_t k = 0; k < 3; ++k) {
    const LazyTensor one = squeeze(slice(x, 0, k, k + 1), 0);
    EXPECT_LE(distance(squeeze(slice(all, 0, k, k + 1), 0), function(one)), 1e-13);
    EXPECT_LE(distance(squeeze(slice(slopes, 0, k, k + 1), 0), slope(one)), 1e-9);
  }
  // Batches of batches.
  EXPECT_EQ(distance(vmap(UnaryFunction([](const LazyTensor& a) { return det(a); }))(stack({x, x})),
                     stack({det(x), det(x)})),
            0);
}

int routines_in(const Plan& plan) {
  return static_cast<int>(std::count_if(plan.steps.begin(), plan.steps.end(),
                                        [](const Step& step) { return step.is<LinalgStep>(); }));
}

TEST(LinalgPlans, OneFactorisationForAllOfItsResults) {
  const Settings saved = settings();
  settings().fusion = true;
  const LazyTensor x = cpu_tensor(random_values(2 * 3 * 5, 0.1, 1, true, 7), Shape{2, 5, 3});
  const auto [u, s, vh] = svd(x, false);
  const auto plan = plan_for({u, s, vh});
  EXPECT_EQ(routines_in(*plan), 1);
  EXPECT_EQ(plan->steps[0].name(), "svd: linalg");
  // Transposed matrices are read where they are, and results are read out of the packed ones.
  EXPECT_EQ(plan_for({inv(transpose(eye(x, 3) + x.numel()))})->steps.size(), 2U);
  // What is held of a routine's results is stored too; here nothing is.
  const auto pseudo_inverse = [&] {
    const auto [left, values, right] = svd(x, false);
    return matmul(transpose(right), left.transpose());
  };
  EXPECT_EQ(plan_for({pseudo_inverse()})->steps.size(), 2U);
  const Explanation explanation = explain({s});
  EXPECT_NE(to_json(explanation).find("\"form\":\"linalg\""), std::string::npos);
  settings() = saved;
}

/// What the reference interpreter makes of the plan of one tensor whose leaves are, in the plan's order,
/// `inputs`.
Doubles by_reference(const LazyTensor& x, const std::vector<LazyTensor>& inputs, double number) {
  const auto plan = plan_for({x});
  reference::PlanMemory memory;
  for (std::size_t b = 0; b < plan->buffers.size(); ++b) {
    memory.buffers.emplace_back(static_cast<std::size_t>(plan->buffers[b].bytes));
    if (b < inputs.size()) inputs[b].copy_to_host(memory.buffers[b].data());
  }
  // The only number that a graph here has: its cotangent, or its tolerance.
  memory.scalars.assign(plan->scalars.size() - plan->constants.size(), std::bit_cast<std::uint64_t>(number));
  memory.scalars.insert(memory.scalars.end(), plan->constants.begin(), plan->constants.end());
  EXPECT_EQ(inputs.size(), static_cast<std::size_t>(plan->input_count));
  reference::run_reference(*plan, memory);
  Doubles out(static_cast<std::size_t>(x.numel()));
  if (!out.empty())
    std::memcpy(out.data(), memory.buffers[inputs.size()].data(), out.size() * sizeof(double));
  return out;
}

TEST(LinalgPlans, DoWhatTextbookAlgorithmsDo) {
  const auto check = [](const char* what, const LazyTensor& x, const std::vector<LazyTensor>& inputs,
                        double number = 1) {
    const Doubles expected = by_reference(x, inputs, number);
    const Doubles actual = doubles(x);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], 1e-11 * (1 + std::abs(expected[i]))) << what << ", element " << i;
  };
  for (const Shape& shape : {Shape{2, 7, 7}, Shape{9, 4}, Shape{4, 9}, Shape{1, 1}, Shape{0, 3}}) {
    SCOPED_TRACE(shape.to_string());
    const LazyTensor x = cpu_tensor(random_values(shape.numel(), 0.1, 1, true, 3), shape);
    const std::int64_t m = x.shape(-2), n = x.shape(-1);
    check("q", matrices::qr_factors(x, m > n).q, {x});
    check("r", matrices::qr_factors(x, m > n).r, {x});
    check("u", matrices::svd_factors(x, m == n).u, {x});
    check("s", matrices::svd_factors(x, m == n).s, {x});
    check("vh", matrices::svd_factors(x, m == n).vh, {x});
    check("svdvals", matrices::svdvals_node(x), {x});
    check("pinv", matrices::pinv_node(x, 0.5), {x}, 0.5);
    if (m != n) continue;
    const LazyTensor b =
        cpu_tensor(random_values(2 * x.numel(), 0.1, 1, true, 5), concatenate({x, x}, -1).shape());
    check("solve", matrices::solve_node(x, b), {x, b});
    check("solve_triangular", matrices::solve_triangular_node(x, b, true), {x, b});
    check("inv", matrices::inv_node(x), {x});
    check("det", matrices::det_node(x), {x});
    check("slogdet", matrices::slogdet_node(x), {x});
    check("cofactor", grad(sum(matrices::det_node(x)), x), {x});
    check("w", matrices::eigh_factors(x).w, {x});
    check("v", matrices::eigh_factors(x).v, {x});
    check("eigvalsh", matrices::eigvalsh_node(x), {x});
    check("exp", matrices::exp_node(x), {x});
    const LazyTensor positive = (matmul(x, transpose(x)) + eye(x, n)).eval();
    check("cholesky", matrices::cholesky_node(positive), {positive});
  }
}

TEST(LinalgPlans, TheVerifierKnowsTheirForm) {
  const LazyTensor x = cpu_tensor(random_values(9, 0.1, 1, true, 7), Shape{3, 3});
  const auto sound = plan_for({solve(x, x)});
  EXPECT_NO_THROW(verify_plan(*sound));
  const auto rejected = [&](auto damage) {
    Plan plan = *sound;
    damage(plan.steps[0]);
    EXPECT_THROW(verify_plan(plan), PlanError);
  };
  rejected([](Step& step) { step.scalars = {0}; });
  rejected([](Step& step) { step.as<LinalgStep>().routine = MatrixRoutine::svd; });
  rejected([](Step& step) { step.dims[4] += 1; });
  rejected([](Step& step) { step.dims[2] -= 1; });
  rejected([](Step& step) { step.operands[0].strides[1] += 1; });
  rejected([](Step& step) { step.operands[1].strides[2] = 1; });
  rejected([](Step& step) { step.dtype = DType::f16; });
  rejected([](Step& step) { step.operands.pop_back(); });
}

TEST(LinalgErrors, NameTheOperationAndTheWayOut) {
  const LazyTensor x = LazyTensor::zeros(Shape{2, 2}, DType::f16, Device::cpu());
  EXPECT_MENTIONS(message_of<DTypeError>([&] { svd(x); }),
                  "svd: computes in float32 and float64, got float16");
  EXPECT_MENTIONS(message_of<ShapeError>([&] {
                    eigh(cpu_tensor({1, 2}, Shape{1, 2}));
                  }),
                  "eigh: needs square");
}

}  // namespace
}  // namespace caldera::testing
