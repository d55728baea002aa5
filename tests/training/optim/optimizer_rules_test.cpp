// RMSprop, Adagrad, NAdam, RAdam, LARS and Lamb over 100 steps in f64 against plain loops in double, written
// after PyTorch's single-tensor forms (torch/optim/*.py) and the papers' algorithms.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "engine/caldera.h"
#include "training/optim/registry.h"

namespace caldera {
namespace {

using Numbers = std::vector<double>;

/// One parameter and what its optimiser keeps.
struct Held {
  Numbers p, a, b, c;
  double product = 1;
  explicit Held(const Numbers& first) : p(first), a(first.size()), b(first.size()), c(first.size()) {}
};
using Rule = std::function<void(Held& h, const Numbers& g, int t)>;

double length_of(const Numbers& x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  return std::sqrt(squares);
}

void expect_rule(const OptimizerOptions& options, const Rule& rule) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  Numbers first(15);
  for (double& x : first) x = normal(random);
  Held held(first);
  LazyTensor x = LazyTensor::from_vector<double>(first, {3, 5}, Device::cpu());
  const auto optimizer = make_optimizer({{"x", &x}}, options);
  for (int t = 1; t <= 100; ++t) {
    Numbers g(first.size());
    for (double& v : g) v = normal(random);
    rule(held, g, t);
    optimizer->update({LazyTensor::from_vector<double>(g, {3, 5}, Device::cpu())});
    eval({}, *optimizer);
  }
  const Numbers got = x.to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], held.p[i], 1e-12 * std::max(1.0, std::abs(held.p[i])))
        << options.name << ", element " << i;
}

TEST(OptimizerRules, Rmsprop) {
  const auto rule = [](double decay, double momentum, bool centered) {
    return [=](Held& h, const Numbers& grad, int) {
      for (std::size_t i = 0; i < h.p.size(); ++i) {
        const double g = grad[i] + decay * h.p[i];
        h.a[i] = 0.9 * h.a[i] + 0.1 * g * g;
        double average = h.a[i];
        if (centered) {
          h.c[i] = h.c[i] + 0.1 * (g - h.c[i]);
          average -= h.c[i] * h.c[i];
        }
        const double root = std::sqrt(average) + 1e-8;
        h.b[i] = momentum * h.b[i] + g / root;
        h.p[i] -= 0.01 * (momentum > 0 ? h.b[i] : g / root);
      }
    };
  };
  OptimizerOptions options{.name = "rmsprop", .learning_rate = 0.01, .more = {{"alpha", 0.9}}};
  expect_rule(options, rule(0, 0, false));
  options.weight_decay = 0.1;
  options.more["momentum"] = 0.8;
  options.more["centered"] = 1;
  expect_rule(options, rule(0.1, 0.8, true));
}

TEST(OptimizerRules, Adagrad) {
  expect_rule({.name = "adagrad", .learning_rate = 0.1, .weight_decay = 0.05, .more = {{"rate_decay", 0.02}}},
              [](Held& h, const Numbers& grad, int t) {
                const double rate = 0.1 / (1 + (t - 1) * 0.02);
                for (std::size_t i = 0; i < h.p.size(); ++i) {
                  const double g = grad[i] + 0.05 * h.p[i];
                  h.a[i] += g * g;
                  h.p[i] -= rate * g / (std::sqrt(h.a[i]) + 1e-10);
                }
              });
}

void add_moments(Held& h, std::size_t i, double g) {
  h.a[i] = 0.9 * h.a[i] + 0.1 * g;
  h.b[i] = 0.999 * h.b[i] + 0.001 * g * g;
}

// PyTorch itself keeps the product in f32, 4e-11 away; 1.13's single-tensor form has a mu too many in it.
TEST(OptimizerRules, NAdam) {
  expect_rule({.name = "nadam", .weight_decay = 0.01}, [](Held& h, const Numbers& grad, int t) {
    const double mu = 0.9 * (1 - 0.5 * std::pow(0.96, t * 4e-3));
    const double next = 0.9 * (1 - 0.5 * std::pow(0.96, (t + 1) * 4e-3));
    h.product *= mu;
    for (std::size_t i = 0; i < h.p.size(); ++i) {
      const double g = grad[i] + 0.01 * h.p[i];
      add_moments(h, i, g);
      const double root = std::sqrt(h.b[i] / (1 - std::pow(0.999, t))) + 1e-8;
      h.p[i] -= 2e-3 * (1 - mu) / (1 - h.product) * g / root;
      h.p[i] -= 2e-3 * next / (1 - h.product * next) * h.a[i] / root;
    }
  });
}

TEST(OptimizerRules, RAdam) {
  expect_rule({.name = "radam", .learning_rate = 0.01}, [](Held& h, const Numbers& g, int t) {
    const double beta = std::pow(0.999, t), last = 2 / (1 - 0.999) - 1,
                 rho = last - 2 * t * beta / (1 - beta);
    for (std::size_t i = 0; i < h.p.size(); ++i) {
      add_moments(h, i, g[i]);
      const double moment = h.a[i] / (1 - std::pow(0.9, t));
      if (rho > 5) {
        const double r = std::sqrt((rho - 4) * (rho - 2) * last / ((last - 4) * (last - 2) * rho));
        h.p[i] -= 0.01 * moment * r * std::sqrt(1 - beta) / (std::sqrt(h.b[i]) + 1e-8);
      } else {
        h.p[i] -= 0.01 * moment;
      }
    }
  });
}

TEST(OptimizerRules, Lars) {
  expect_rule({.name = "lars", .learning_rate = 0.5, .weight_decay = 0.01, .more = {{"trust", 0.1}}},
              [](Held& h, const Numbers& g, int) {
                const double weight = length_of(h.p),
                             local = 0.1 * weight / (length_of(g) + 0.01 * weight + 1e-8);
                for (std::size_t i = 0; i < h.p.size(); ++i) {
                  h.a[i] = 0.9 * h.a[i] + 0.5 * local * (g[i] + 0.01 * h.p[i]);
                  h.p[i] -= h.a[i];
                }
              });
}

TEST(OptimizerRules, Lamb) {
  expect_rule({.name = "lamb", .learning_rate = 0.02}, [](Held& h, const Numbers& g, int t) {
    Numbers u(h.p.size());
    for (std::size_t i = 0; i < h.p.size(); ++i) {
      add_moments(h, i, g[i]);
      u[i] = h.a[i] / (1 - std::pow(0.9, t)) / (std::sqrt(h.b[i] / (1 - std::pow(0.999, t))) + 1e-6) +
             0.01 * h.p[i];
    }
    const double ratio = length_of(h.p) / length_of(u);
    for (std::size_t i = 0; i < h.p.size(); ++i) h.p[i] -= 0.02 * ratio * u[i];
  });
}

// A layer of zeros has no norm to scale by, and moves nevertheless.
TEST(OptimizerRules, LayersOfZerosMove) {
  for (const char* name : {"lars", "lamb"}) {
    LazyTensor x = LazyTensor::zeros({4}, DType::f32, Device::cpu());
    const auto optimizer = make_optimizer({{"x", &x}}, {.name = name, .learning_rate = 0.1});
    optimizer->update({LazyTensor::ones({4}, DType::f32, Device::cpu())});
    eval({}, *optimizer);
    EXPECT_LT(x.to_vector<float>()[0], -0.05F) << name;
  }
}

}  // namespace
}  // namespace caldera
