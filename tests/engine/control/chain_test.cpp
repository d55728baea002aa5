// chain against the functions called one behind the other.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class ChainTest : public OpTest {
 protected:
  static LazyTensor values(const Shape& shape, std::uint64_t seed) {
    return upload(Host(shape, random_values(shape.numel(), 0.2, 0.9, true, seed)), DType::f32,
                  default_device());
  }
  static void expect_same(const LazyTensor& a, const LazyTensor& b, const std::string& what) {
    EXPECT_TRUE(agrees(a, Host{b.shape(), download(b)}, {2e-5, 2e-5})) << what;
  }
  static LazyTensor called(std::span<const UnaryFunction> functions, LazyTensor x) {
    for (const UnaryFunction& function : functions) x = function(x);
    return x;
  }
  static std::size_t steps(const LazyTensor& x) { return plan_for({x})->steps.size(); }
};
INSTANTIATE_TEST_SUITE_P(Devices, ChainTest, ::testing::ValuesIn(op_settings()), op_setting_name);

/// What the functions capture, each a matrix or a vector of its own, and one tensor that all have.
struct Captured {
  std::vector<LazyTensor> matrices, vectors;
  LazyTensor shared;

  UnaryFunction product(std::size_t i) const {
    return [w = matrices[i], c = shared](const LazyTensor& x) { return tanh(matmul(x, w) + c); };
  }
  UnaryFunction sum(std::size_t i) const {
    return [v = vectors[i]](const LazyTensor& x) { return sin(x) + v * 0.5; };
  }
};

TEST_P(ChainTest, IsTheFunctionsOneBehindTheOther) {
  Captured all{.matrices = {}, .vectors = {}, .shared = values({3}, 1)};
  for (std::uint64_t i = 0; i < 10; ++i) {
    all.matrices.push_back(values({3, 3}, 10 + i));
    all.vectors.push_back(values({3}, 30 + i));
  }
  const LazyTensor x = values({2, 3}, 2);
  // p: a product, s: a sum, w: one that gives another shape, and back.
  for (const std::string form : {"p", "pp", "pppppp", "psps", "psspsspss", "ppsps", "spppps", "pwpp", ""}) {
    for (const bool checkpointed : {false, true}) {
      if (is_vulkan() && (checkpointed || form.size() % 2 == 0)) continue;  // kernels take seconds to compile
      const auto functions = [&](const Captured& of) {
        std::vector<UnaryFunction> list;
        for (std::size_t i = 0; i < form.size(); ++i) {
          if (form[i] == 'w') {
            list.emplace_back([](const LazyTensor& y) { return concatenate({y, y}, 0); });
            list.emplace_back([](const LazyTensor& y) { return slice(y, 0, 1, 3) * 2; });
          } else {
            list.push_back(form[i] == 'p' ? of.product(i) : of.sum(i));
          }
        }
        return list;
      };
      std::vector<LazyTensor> arguments{x, all.shared};
      arguments.insert(arguments.end(), all.matrices.begin(), all.matrices.end());
      const auto loss = [&](bool chained) {
        return [&, chained](std::span<const LazyTensor> a) {
          Captured of = all;
          of.shared = a[1];
          for (std::size_t i = 0; i < of.matrices.size(); ++i) of.matrices[i] = a[2 + i];
          const auto list = functions(of);
          return sum(cos(chained ? chain(list, a[0], {.checkpointed = checkpointed}) : called(list, a[0])));
        };
      };
      const auto [got, grads] = value_and_grad(loss(true), arguments);
      const auto [want, expected] = value_and_grad(loss(false), arguments);
      expect_same(got, want, form);
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        ASSERT_EQ(grads[i].defined(), expected[i].defined()) << form << ", argument " << i;
        if (expected[i].defined())
          expect_same(grads[i], expected[i], form + ", argument " + std::to_string(i));
      }
    }
  }
}

TEST_P(ChainTest, AsManyStepsHoweverManyFunctions) {
  Captured all{.matrices = {}, .vectors = {}, .shared = values({3}, 1)};
  for (std::uint64_t i = 0; i < 40; ++i) {
    all.matrices.push_back(values({3, 3}, 10 + i));
    all.vectors.push_back(values({3}, 60 + i));
  }
  const auto steps_of = [&](std::size_t turns, bool is_training) {
    std::vector<UnaryFunction> list;
    for (std::size_t i = 0; i < turns; ++i) {
      list.push_back(all.product(i));
      list.push_back(all.sum(i));
    }
    const LazyTensor y = sum(chain(list, values({2, 3}, 2)));
    return is_training ? steps(grad(y, all.matrices[0])) : steps(y);
  };
  EXPECT_EQ(steps_of(2, false), steps_of(40, false));
  EXPECT_EQ(steps_of(2, true), steps_of(40, true));
}

TEST_P(ChainTest, FunctionsThatDifferAreNotMixedUp) {
  // Graphs that differ in a number, in what they draw, in a type, in which tensors are one.
  const LazyTensor x = values({4}, 3), a = values({4}, 4), b = values({4}, 5);
  const std::vector<UnaryFunction> numbers{[](const LazyTensor& y) { return y * 0.5; },
                                           [](const LazyTensor& y) { return y * 0.25; }};
  const std::vector<UnaryFunction> draws{
      [](const LazyTensor& y) { return y + random_uniform({4}, 1, DType::f32, y.device()); },
      [](const LazyTensor& y) { return y + random_uniform({4}, 2, DType::f32, y.device()); }};
  const LazyTensor half = astype(b, DType::f16);
  half.eval();
  const std::vector<UnaryFunction> types{[&](const LazyTensor& y) { return sin(y + a); },
                                         [&](const LazyTensor& y) { return sin(y + half); }};
  const std::vector<UnaryFunction> aliases{[&](const LazyTensor& y) { return y * a + b; },
                                           [&](const LazyTensor& y) { return y * a + a; }};
  const std::vector<UnaryFunction> order{[&](const LazyTensor& y) { return y * a - b; },
                                         [&](const LazyTensor& y) { return a - y * b; }};
  const UnaryFunction moves = [](const LazyTensor& y) { return sin(y.to(Device::cpu())).to(y.device()); };
  const std::vector<UnaryFunction> moved{moves, moves};
  for (const auto& functions : {numbers, draws, types, aliases, order, moved})
    expect_same(chain(functions, x), called(functions, x), "two that differ");
}

TEST_P(ChainTest, RefusesWhatIsNoFunction) {
  const LazyTensor x = values({4}, 3);
  const std::vector<UnaryFunction> none{UnaryFunction()};
  EXPECT_MENTIONS(message_of<ValueError>([&] { (void)chain(none, x); }), "chain");
  const std::vector<UnaryFunction> reads{
      [](const LazyTensor& y) { return y * static_cast<double>(sum(y).item<float>()); }};
  EXPECT_MENTIONS(message_of<ValueError>([&] { (void)chain(reads, x); }), "body of a loop or branch");
}

}  // namespace
}  // namespace caldera::testing
