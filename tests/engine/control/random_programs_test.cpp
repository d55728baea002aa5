// Random programs of nested cond, switch_case, while_loop and scan with element-wise work between them:
// values and gradients against an interpreter on the host that computes with dual numbers, statement by
// statement.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

constexpr std::int64_t kWidth = 3;

/// A number and its derivative along one direction.
struct Dual {
  double value = 0, slope = 0;
};
Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
Dual sine(Dual a) { return {std::sin(a.value), std::cos(a.value) * a.slope}; }
Dual tangent(Dual a) {
  const double t = std::tanh(a.value);
  return {t, (1 - t * t) * a.slope};
}

using HostVector = std::array<Dual, kWidth>;

/// A statement adds a variable to those that there are.
enum class Kind : std::uint8_t { add, multiply, sine, tanh, shift, cond, choose, loop, scan };

struct Block;
struct Statement {
  Kind kind = Kind::add;
  std::size_t a = 0, b = 0;  // variables that it reads
  double number = 0;         // a bound, or a factor
  std::int64_t turns = 0;
  std::int64_t snapshots = 0;
  bool reverse = false;
  bool captures = false;  // blocks capture variables rather than take them as arguments
  std::vector<Block> blocks = {};
};
struct Block {
  std::vector<Statement> statements;
};

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  /// A block that begins with `variables` of them and adds at least one.
  Block block(std::size_t variables, int depth) {
    Block made;
    const std::size_t count = 1 + pick(3);
    for (std::size_t i = 0; i < count; ++i) made.statements.push_back(statement(variables + i, depth));
    return made;
  }

 private:
  std::size_t pick(std::size_t below) { return random_() % below; }

  Statement statement(std::size_t variables, int depth) {
    Statement s;
    s.kind = static_cast<Kind>(pick(depth > 0 ? 9 : 5));
    s.a = pick(variables);
    s.b = pick(variables);
    s.number = static_cast<double>(pick(1000)) / 1000 - 0.5;
    s.turns = 1 + static_cast<std::int64_t>(pick(5));
    s.snapshots = static_cast<std::int64_t>(pick(4));
    s.reverse = pick(2) == 0;
    s.captures = pick(2) == 0;
    const std::size_t blocks = s.kind == Kind::choose ? 3
                               : s.kind == Kind::cond ? 2
                               : s.kind < Kind::cond  ? 0
                                                      : 1;
    // Loops add what goes round to the variables that their blocks see.
    const std::size_t more = s.kind == Kind::loop ? 1 : s.kind == Kind::scan ? 2 : 0;
    for (std::size_t i = 0; i < blocks; ++i) s.blocks.push_back(block(variables + more, depth - 1));
    return s;
  }

  std::mt19937 random_;
};

/// Which of three branches a number chooses.
double third_of(double total) { return std::floor(total * 2); }

// ---- on the host ----

using HostVariables = std::vector<HostVector>;

Dual total(const HostVector& x) { return x[0] + x[1] + x[2]; }

HostVector run(const Block& block, HostVariables variables);

HostVector run(const Statement& s, const HostVariables& variables) {
  const HostVector &a = variables[s.a], &b = variables[s.b];
  HostVector out{};
  const auto each = [&](auto function) {
    for (std::size_t i = 0; i < kWidth; ++i) out[i] = function(i);
    return out;
  };
  switch (s.kind) {
    case Kind::add:
      return each([&](std::size_t i) { return a[i] + Dual{s.number, 0} * b[i]; });
    case Kind::multiply:
      return each([&](std::size_t i) { return tangent(a[i] * b[i]); });
    case Kind::sine:
      return each([&](std::size_t i) { return sine(a[i]); });
    case Kind::tanh:
      return each([&](std::size_t i) { return tangent(a[i] + b[i]); });
    case Kind::shift:
      return each([&](std::size_t i) { return a[(i + 1) % kWidth] + Dual{s.number, 0}; });
    case Kind::cond:
      return run(s.blocks[total(a).value > s.number ? 1 : 0], variables);
    case Kind::choose:
      return run(s.blocks[static_cast<std::size_t>(std::clamp(third_of(total(a).value), 0.0, 2.0))],
                 variables);
    case Kind::loop: {
      HostVector x = a;
      for (std::int64_t turn = 0; turn < s.turns && total(x).value > s.number - 1; ++turn) {
        HostVariables inside = variables;
        inside.push_back(x);
        x = run(s.blocks[0], inside);
        for (Dual& element : x) element = tangent(element);
      }
      return x;
    }
    case Kind::scan: {
      // Goes through rows turn * number + b, and adds up what it stacks.
      HostVector x = a, sum{};
      for (std::int64_t t = 0; t < s.turns; ++t) {
        const auto row = static_cast<double>(s.reverse ? s.turns - 1 - t : t) * s.number;
        HostVariables inside = variables;
        inside.push_back(each([&](std::size_t i) { return Dual{row, 0} + b[i]; }));
        inside.push_back(x);
        x = run(s.blocks[0], inside);
        for (std::size_t i = 0; i < kWidth; ++i) {
          x[i] = tangent(x[i]);
          sum[i] = sum[i] + Dual{row + 1, 0} * x[i];
        }
      }
      return each([&](std::size_t i) { return x[i] + sum[i]; });
    }
  }
  return out;
}

HostVector run(const Block& block, HostVariables variables) {
  for (const Statement& s : block.statements) variables.push_back(run(s, variables));
  return variables.back();
}

// ---- as a graph ----

using Variables = std::vector<LazyTensor>;

LazyTensor build(const Block& block, Variables variables);

/// A block over what it is given, or over what it captures.
VectorFunction branch(const Block& block, const Statement& s, const Variables& variables) {
  return [&block, captures = s.captures, variables](std::span<const LazyTensor> given) {
    return std::vector{build(block, captures ? variables : Variables(given.begin(), given.end()))};
  };
}

LazyTensor build(const Statement& s, const Variables& variables) {
  const LazyTensor &a = variables[s.a], &b = variables[s.b];
  const Variables taken = s.captures ? Variables() : variables;
  switch (s.kind) {
    case Kind::add:
      return a + s.number * b;
    case Kind::multiply:
      return tanh(a * b);
    case Kind::sine:
      return sin(a);
    case Kind::tanh:
      return tanh(a + b);
    case Kind::shift:
      return roll(a, -1, 0) + s.number;
    case Kind::cond:
      return cond(sum(a) > s.number, branch(s.blocks[1], s, variables), branch(s.blocks[0], s, variables),
                  taken)[0];
    case Kind::choose: {
      const std::vector<VectorFunction> branches{branch(s.blocks[0], s, variables),
                                                 branch(s.blocks[1], s, variables),
                                                 branch(s.blocks[2], s, variables)};
      return switch_case(astype(floor(sum(a) * 2), DType::i32), branches, taken)[0];
    }
    case Kind::loop: {
      const auto test = [&](std::span<const LazyTensor> x) {
        return logical_and(x[0]<static_cast<double>(s.turns), sum(x[1])> s.number - 1);
      };
      const auto body = [&](std::span<const LazyTensor> x) {
        Variables inside = variables;
        inside.push_back(x[1]);
        return std::vector{x[0] + 1, tanh(build(s.blocks[0], inside))};
      };
      return while_loop(test, body, std::vector{zeros({}, DType::i32, a.device()), a},
                        {.snapshots = std::max<std::int64_t>(1, s.snapshots)})[1];
    }
    case Kind::scan: {
      const LazyTensor rows = iota(Shape{s.turns}, 0, a.dtype(), a.device()) * s.number;
      const auto body = [&](std::span<const LazyTensor> x, std::span<const LazyTensor> row) {
        Variables inside = variables;
        inside.push_back(row[0] + b);
        inside.push_back(x[0]);
        const LazyTensor next = tanh(build(s.blocks[0], inside));
        return ScanTurn{{next}, {(row[0] + 1) * next}};
      };
      const ScanTurn last =
          scan(body, std::vector{a}, std::vector{rows}, {.reverse = s.reverse, .snapshots = s.snapshots});
      return last.carry[0] + sum(last.stacked[0], 0);
    }
  }
  return a;
}

LazyTensor build(const Block& block, Variables variables) {
  for (const Statement& s : block.statements) variables.push_back(build(s, variables));
  return variables.back();
}

// ---- both ----

class RandomLoops : public OpTest {
 protected:
  /// CALDERA_TEST_PROGRAMS, or few: a device that compiles kernels takes a second for each.
  int count() const {
    const char* asked = std::getenv("CALDERA_TEST_PROGRAMS");
    return asked != nullptr ? std::atoi(asked) : is_vulkan() ? 6 : 150;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, RandomLoops, ::testing::ValuesIn(op_settings()), op_setting_name);

constexpr int kElements = 2 * kWidth;

/// A weighted sum of what a program gives for two variables, and its slope along each of their elements.
struct Known {
  double value = 0;
  std::array<double, kElements> slopes{};
};

std::vector<double> random_numbers(int seed, int count) {
  std::mt19937 random(static_cast<std::uint32_t>(seed) + 77);
  std::vector<double> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(static_cast<double>(random() % 2000) / 1000 - 1);
  return numbers;
}

Known known_of(const Block& program, std::span<const double> numbers) {
  Known known;
  for (int direction = 0; direction < kElements; ++direction) {
    HostVariables x(2);
    for (int i = 0; i < kElements; ++i) {
      x[static_cast<std::size_t>(i / kWidth)][static_cast<std::size_t>(i % kWidth)] = {
          numbers[static_cast<std::size_t>(i)], i == direction ? 1.0 : 0};
    }
    const HostVector out = run(program, x);
    known.value = 0;
    for (std::size_t i = 0; i < kWidth; ++i) {
      known.value += static_cast<double>(i + 1) * out[i].value;
      known.slopes[static_cast<std::size_t>(direction)] += static_cast<double>(i + 1) * out[i].slope;
    }
  }
  return known;
}

/// The same of the graph: the value, then the gradients.
std::vector<LazyTensor> value_and_gradients_of(const Block& program, std::span<const LazyTensor> x) {
  const LazyTensor weights = iota(Shape{kWidth}, 0, DType::f64, x[0].device()) + 1;
  const auto [value, grads] = value_and_grad(
      [&](std::span<const LazyTensor> a) {
        return sum(weights * build(program, {a[0], a[1]}));
      },
      x);
  return {value, grads[0], grads[1]};
}

void expect_known(double got, double want, const std::string& what) {
  EXPECT_NEAR(got, want, 1e-10 * (1 + std::abs(want))) << what;
}

TEST_P(RandomLoops, ValuesAndGradientsAreThoseOfTheInterpreter) {
  if (!supports(DType::f64)) GTEST_SKIP() << "no f64";
  for (int seed = 0; seed < count(); ++seed) {
    const Block program = Generator(static_cast<std::uint32_t>(seed)).block(2, 3);
    const std::vector<double> numbers = random_numbers(seed, kElements);
    const LazyTensor both = LazyTensor::from_vector(numbers, Shape{2, kWidth}, device());
    const std::vector<LazyTensor> x = unstack(both);
    const std::vector<LazyTensor> out = value_and_gradients_of(program, x);
    eval(out);
    const Known known = known_of(program, numbers);
    expect_known(out[0].item<double>(), known.value, "program " + std::to_string(seed));
    for (std::size_t i = 0; i < kElements; ++i) {
      expect_known(out[1 + i / kWidth].to_vector<double>()[i % kWidth], known.slopes[i],
                   "program " + std::to_string(seed) + ", element " + std::to_string(i));
    }
  }
}

/// Gradients of examples, and the gradient of a sum over examples, in which one variable may be the same for
/// all.
TEST_P(RandomLoops, MappedProgramsAreThoseOfTheInterpreterExampleByExample) {
  if (!supports(DType::f64)) GTEST_SKIP() << "no f64";
  constexpr std::int64_t kExamples = 3;
  for (int seed = 0; seed < count(); ++seed) {
    const Block program = Generator(static_cast<std::uint32_t>(seed)).block(2, 3);
    const int shared = seed % 3;  // 0 or 1: that variable is the same for all examples
    std::vector<double> numbers = random_numbers(seed, kExamples * kElements);
    for (std::size_t i = kElements; i < numbers.size(); ++i) {
      if (static_cast<int>(i % kElements) / kWidth == shared) numbers[i] = numbers[i % kElements];
    }
    const LazyTensor all = LazyTensor::from_vector(numbers, Shape{kExamples, 2, kWidth}, device());
    std::vector<LazyTensor> x = unstack(all, 1);
    std::vector<std::optional<int>> axes{0, 0};
    if (shared < 2) {
      x[static_cast<std::size_t>(shared)] = unstack(x[static_cast<std::size_t>(shared)])[0];
      axes[static_cast<std::size_t>(shared)] = kUnmapped;
    }
    const std::vector<LazyTensor> out =
        vmap(VectorFunction([&](auto a) { return value_and_gradients_of(program, a); }), axes)(x);
    const auto [total, grads] = value_and_grad(
        [&](std::span<const LazyTensor> a) {
          const TensorFunction one = [&](std::span<const LazyTensor> of) {
            const LazyTensor weights = iota(Shape{kWidth}, 0, DType::f64, device()) + 1;
            return sum(weights * build(program, {of[0], of[1]}));
          };
          return sum(vmap(one, axes)(a));
        },
        x);
    eval(std::vector{out[0], out[1], out[2], total, grads[0], grads[1]});
    double sum_of_values = 0;
    std::array<double, kElements> sum_of_slopes{};
    for (std::size_t e = 0; e < kExamples; ++e) {
      const std::string what = "program " + std::to_string(seed) + ", example " + std::to_string(e);
      const Known known = known_of(program, std::span(numbers).subspan(e * kElements, kElements));
      expect_known(out[0].to_vector<double>()[e], known.value, what);
      sum_of_values += known.value;
      for (std::size_t i = 0; i < kElements; ++i) {
        const std::string where = what + ", element " + std::to_string(i);
        const std::size_t at = e * kWidth + i % kWidth;
        expect_known(out[1 + i / kWidth].to_vector<double>()[at], known.slopes[i], where);
        sum_of_slopes[i] += known.slopes[i];
        if (static_cast<int>(i / kWidth) != shared)
          expect_known(grads[i / kWidth].to_vector<double>()[at], known.slopes[i], where + " of the sum");
      }
    }
    expect_known(total.item<double>(), sum_of_values, "program " + std::to_string(seed));
    for (std::size_t i = 0; i < kElements; ++i) {
      if (static_cast<int>(i / kWidth) == shared)
        expect_known(grads[i / kWidth].to_vector<double>()[i % kWidth], sum_of_slopes[i],
                     "program " + std::to_string(seed) + ", shared element " + std::to_string(i));
    }
  }
}

}  // namespace
}  // namespace caldera::testing
