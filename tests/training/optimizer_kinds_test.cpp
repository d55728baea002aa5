// Adam, Lion, Adafactor, Muon and 8-bit AdamW against plain loops in double that follow the papers and
// PyTorch's single-tensor forms; parameter groups against optimisers of their own.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "engine/runtime/runtime.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"
#include "training/optim/block_code.h"
#include "training/optim/registry.h"

namespace caldera::testing {
namespace {

// One parameter and its state, as plain arrays: row-major, of shape (rows, columns).
struct Plain {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  Doubles theta;
  Doubles m, v;  // what the optimiser makes of them; of Adafactor row_var and col_var
  bool vector = false;

  std::size_t size() const { return theta.size(); }
  double& at(Doubles& of, std::int64_t row, std::int64_t column) const {
    return of[to_size(row * columns + column)];
  }
};

double mean_square(const Doubles& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return sum / static_cast<double>(values.size());
}

using PlainStep = std::function<void(Plain& p, const Doubles& grad, double lr, int t)>;

PlainStep plain_adam(double decay) {
  return [decay](Plain& p, const Doubles& grad, double lr, int t) {
    p.m.resize(p.size());
    p.v.resize(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = grad[i] + decay * p.theta[i];
      p.m[i] = 0.9 * p.m[i] + 0.1 * g;
      p.v[i] = 0.999 * p.v[i] + 0.001 * g * g;
      const double corrected = std::sqrt(p.v[i] / (1 - std::pow(0.999, t)));
      p.theta[i] -= lr / (1 - std::pow(0.9, t)) * p.m[i] / (corrected + 1e-8);
    }
  };
}

PlainStep plain_lion(double decay) {
  return [decay](Plain& p, const Doubles& grad, double lr, int) {
    p.m.resize(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double c = 0.9 * p.m[i] + 0.1 * grad[i];
      p.theta[i] -= lr * ((c > 0 ? 1.0 : c < 0 ? -1.0 : 0.0) + decay * p.theta[i]);
      p.m[i] = 0.99 * p.m[i] + 0.01 * grad[i];
    }
  };
}

// torch/optim/_adafactor.py, _single_tensor_adafactor.
PlainStep plain_adafactor(double decay) {
  return [decay](Plain& p, const Doubles& grad, double lr, int t) {
    const double fresh = std::pow(t, -0.8);
    const double eps = std::numeric_limits<float>::epsilon();
    const double alpha = std::max(1e-3, std::sqrt(mean_square(p.theta))) * std::min(lr, 1 / std::sqrt(t));
    for (double& x : p.theta) x *= 1 - lr * decay;
    Doubles update(p.size());
    if (p.vector) {
      p.v.resize(p.size());
      for (std::size_t i = 0; i < p.size(); ++i) {
        p.v[i] += fresh * (grad[i] * grad[i] - p.v[i]);
        update[i] = grad[i] / std::sqrt(std::max(p.v[i], eps * eps));
      }
    } else {
      p.m.resize(to_size(p.rows));
      p.v.resize(to_size(p.columns));
      Doubles row_means(p.m.size());
      Doubles column_means(p.v.size());
      Doubles squares(grad);
      for (std::int64_t r = 0; r < p.rows; ++r)
        for (std::int64_t c = 0; c < p.columns; ++c) {
          const double g = p.at(squares, r, c);
          row_means[to_size(r)] += g * g / static_cast<double>(p.columns);
          column_means[to_size(c)] += g * g / static_cast<double>(p.rows);
        }
      double mean_row = 0;
      for (std::size_t r = 0; r < p.m.size(); ++r) {
        p.m[r] += fresh * (row_means[r] - p.m[r]);
        mean_row += p.m[r] / static_cast<double>(p.m.size());
      }
      for (std::size_t c = 0; c < p.v.size(); ++c) p.v[c] += fresh * (column_means[c] - p.v[c]);
      for (std::int64_t r = 0; r < p.rows; ++r)
        for (std::int64_t c = 0; c < p.columns; ++c) {
          const double variance = p.m[to_size(r)] * p.v[to_size(c)] / std::max(mean_row, eps);
          p.at(update, r, c) = p.at(squares, r, c) / std::sqrt(std::max(variance, eps * eps));
        }
    }
    const double denominator = std::max(1.0, std::sqrt(mean_square(update)));
    for (std::size_t i = 0; i < p.size(); ++i) p.theta[i] -= alpha / denominator * update[i];
  };
}

Doubles product(const Doubles& a, const Doubles& b, std::int64_t n, std::int64_t k, std::int64_t m) {
  Doubles out(to_size(n * m));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < m; ++j)
      for (std::int64_t l = 0; l < k; ++l)
        out[to_size(i * m + j)] += a[to_size(i * k + l)] * b[to_size(l * m + j)];
  return out;
}

Doubles turned_around(const Doubles& a, std::int64_t rows, std::int64_t columns) {
  Doubles out(a.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) out[to_size(c * rows + r)] = a[to_size(r * columns + c)];
  return out;
}

// torch/optim/_muon.py, _zeropower_via_newtonschulz, without its bfloat16.
Doubles newton_schulz(Doubles x, std::int64_t rows, std::int64_t columns) {
  const bool tall = rows > columns;
  if (tall) {
    x = turned_around(x, rows, columns);
    std::swap(rows, columns);
  }
  double norm = 0;
  for (const double v : x) norm += v * v;
  for (double& v : x) v /= std::max(std::sqrt(norm), 1e-7);
  for (int i = 0; i < 5; ++i) {
    const Doubles gram = product(x, turned_around(x, rows, columns), rows, columns, rows);
    Doubles polynomial = product(gram, gram, rows, rows, rows);
    for (std::size_t k = 0; k < gram.size(); ++k) polynomial[k] = -4.7750 * gram[k] + 2.0315 * polynomial[k];
    const Doubles moved = product(polynomial, x, rows, rows, columns);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = 3.4445 * x[k] + moved[k];
  }
  return tall ? turned_around(x, rows, columns) : x;
}

PlainStep plain_muon(double decay) {
  return [decay](Plain& p, const Doubles& grad, double lr, int t) {
    if (p.vector) {  // AdamW
      p.m.resize(p.size());
      p.v.resize(p.size());
      for (std::size_t i = 0; i < p.size(); ++i) {
        p.theta[i] *= 1 - lr * decay;
        p.m[i] = 0.9 * p.m[i] + 0.1 * grad[i];
        p.v[i] = 0.999 * p.v[i] + 0.001 * grad[i] * grad[i];
        const double corrected = std::sqrt(p.v[i] / (1 - std::pow(0.999, t)));
        p.theta[i] -= lr / (1 - std::pow(0.9, t)) * p.m[i] / (corrected + 1e-8);
      }
      return;
    }
    p.m.resize(p.size());
    Doubles direction(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      p.m[i] += (1 - 0.95) * (grad[i] - p.m[i]);
      direction[i] = grad[i] + 0.95 * (p.m[i] - grad[i]);
    }
    const Doubles update = newton_schulz(direction, p.rows, p.columns);
    const double ratio = std::max(1.0, static_cast<double>(p.rows) / static_cast<double>(p.columns));
    for (std::size_t i = 0; i < p.size(); ++i)
      p.theta[i] = p.theta[i] * (1 - lr * decay) - lr * std::sqrt(ratio) * update[i];
  };
}

class OptimizerKinds : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }

  // Fifteen steps of a wide matrix, a tall one and a vector.
  void follows(const OptimizerOptions& options, const PlainStep& step, double tolerance) {
    std::vector<Plain> plain{
        {5, 9, random_doubles(45, 1)}, {12, 3, random_doubles(36, 2)}, {1, 33, random_doubles(33, 3)}};
    plain[2].vector = true;
    const std::vector<Shape> shapes{Shape{5, 9}, Shape{12, 3}, Shape{33}};
    std::vector<LazyTensor> tensors;
    for (std::size_t i = 0; i < plain.size(); ++i)
      tensors.push_back(make_tensor(plain[i].theta, shapes[i], DType::f32, GetParam()));
    const auto optimizer =
        make_optimizer({{"wide", &tensors[0]}, {"tall", &tensors[1]}, {"vector", &tensors[2]}}, options);
    std::uint64_t misses = 0;
    for (int t = 1; t <= 15; ++t) {
      const double lr = 0.01 * (1 + 0.1 * t);
      std::vector<LazyTensor> grads;
      for (std::size_t i = 0; i < plain.size(); ++i) {
        const Doubles grad =
            random_doubles(static_cast<std::int64_t>(plain[i].size()), to_size(100 * t) + i, -2, 2);
        step(plain[i], grad, lr, t);
        grads.push_back(make_tensor(grad, shapes[i], DType::f32, GetParam()));
      }
      optimizer->update(grads, lr);
      eval({}, *optimizer);
      for (std::size_t i = 0; i < plain.size(); ++i)
        expect_close(tensors[i], plain[i].theta, tolerance, options.name + ", step " + std::to_string(t));
      if (t == 2) misses = plan_cache_stats().misses;
    }
    EXPECT_EQ(plan_cache_stats().misses, misses) << options.name << ": a later step was planned anew";
  }
};

TEST_P(OptimizerKinds, AdamFollowsThePlainLoop) {
  follows({.name = "adam"}, plain_adam(0), 1e-5);
  follows({.name = "adam", .weight_decay = 0.1}, plain_adam(0.1), 1e-5);
}
TEST_P(OptimizerKinds, LionFollowsThePlainLoop) {
  follows({.name = "lion"}, plain_lion(0), 1e-5);
  follows({.name = "lion", .weight_decay = 0.1}, plain_lion(0.1), 1e-5);
}
TEST_P(OptimizerKinds, AdafactorFollowsThePlainLoop) {
  follows({.name = "adafactor"}, plain_adafactor(0), 2e-5);
  follows({.name = "adafactor", .weight_decay = 0.1}, plain_adafactor(0.1), 2e-5);
}
TEST_P(OptimizerKinds, MuonFollowsThePlainLoop) {
  follows({.name = "muon", .weight_decay = 0}, plain_muon(0), 1e-4);
  follows({.name = "muon"}, plain_muon(0.1), 1e-4);
}

// ---- 8 bits
// --------------------------------------------------------------------------------------------------------

// bitsandbytes/functional.py, create_dynamic_map, as it is written there.
std::vector<float> reference_map(bool is_signed) {
  std::vector<double> data;
  for (int i = 0; i < 7; ++i) {
    const int items = is_signed ? (1 << i) + 1 : (1 << (i + 1)) + 1;
    std::vector<double> boundaries;
    for (int k = 0; k < items; ++k) boundaries.push_back(0.1 + 0.9 * k / (items - 1));
    for (int k = 0; k + 1 < items; ++k) {
      const double mean = (boundaries[to_size(k)] + boundaries[to_size(k + 1)]) / 2;
      data.push_back(std::pow(10.0, -6 + i) * mean);
      if (is_signed) data.push_back(-std::pow(10.0, -6 + i) * mean);
    }
  }
  data.push_back(0);
  data.push_back(1);
  std::ranges::sort(data);
  return {data.begin(), data.end()};
}

TEST(BlockCode, HasThePapersMaps) {
  for (const bool is_signed : {true, false}) {
    const std::vector<float> map = detail::dynamic_map(is_signed);
    const std::vector<float> expected = reference_map(is_signed);
    ASSERT_EQ(map.size(), 256U);
    ASSERT_EQ(expected.size(), 256U);
    for (std::size_t i = 0; i < 256; ++i) EXPECT_NEAR(map[i], expected[i], 1e-7 * std::abs(expected[i])) << i;
    EXPECT_EQ(map.back(), 1);
    EXPECT_EQ(std::ranges::count(map, 0.0F), 1);
  }
  EXPECT_NEAR(detail::dynamic_map(true).front(), -0.99296875, 1e-7);
}

// What an array of f32 becomes when it is coded and decoded, block by block, by search among all 256 numbers.
Doubles through_eight_bits(const Doubles& values, bool is_signed) {
  const std::vector<float> map = reference_map(is_signed);
  Doubles out(values.size());
  for (std::size_t begin = 0; begin < values.size(); begin += 256) {
    const std::size_t end = std::min(begin + 256, values.size());
    double absmax = 0;
    for (std::size_t i = begin; i < end; ++i) absmax = std::max(absmax, std::abs(values[i]));
    for (std::size_t i = begin; i < end; ++i) {
      const double x = absmax == 0 ? 0 : values[i] / absmax;
      const auto nearest =
          std::ranges::min_element(map, {}, [&](float candidate) { return std::abs(candidate - x); });
      out[i] = *nearest * absmax;
    }
  }
  return out;
}

TEST_P(OptimizerKinds, EightBitsHoldTheNearestNumberOfTheMap) {
  for (const std::int64_t size : {1, 255, 256, 257, 1000}) {
    Doubles values = random_doubles(size, to_size(size), -3, 3);
    for (std::size_t i = 0; i < values.size(); i += 3) values[i] *= 1e-4;
    for (const bool is_signed : {true, false}) {
      if (!is_signed)
        for (double& v : values) v = std::abs(v);
      const LazyTensor x = make_tensor(values, Shape{size}, DType::f32, GetParam());
      const detail::BlockCode code(is_signed, GetParam());
      const detail::CodedTensor coded = code.encode(x);
      EXPECT_EQ(coded.codes.dtype(), DType::u8);
      const Doubles decoded = to_doubles(code.decode(coded, x.shape()));
      const Doubles expected = through_eight_bits(values, is_signed);
      for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(decoded[i], expected[i], 1e-5 * std::abs(expected[i])) << i;
    }
  }
  const LazyTensor zeros = LazyTensor::zeros(Shape{300}, DType::f32, GetParam());
  const detail::BlockCode code(true, GetParam());
  EXPECT_EQ(to_doubles(code.decode(code.encode(zeros), Shape{300})), Doubles(300, 0));
}

// The moments of each step come out of 8 bits; what one step makes of them is AdamW's.
TEST_P(OptimizerKinds, EightBitAdamWFollowsThePlainLoop) {
  const Shape shape{20, 31};
  const std::int64_t count = 620;
  Doubles theta = random_doubles(count, 1);
  Doubles m(to_size(count));
  Doubles v(to_size(count));
  LazyTensor x = make_tensor(theta, shape, DType::f32, GetParam());
  const auto optimizer = make_optimizer(
      {{"x", &x}}, {.name = "adamw_8bit", .weight_decay = 0.1, .more = {{"min_8bit_size", 1}}});
  std::int64_t differ = 0;
  for (int t = 1; t <= 10; ++t) {
    const Doubles grad = random_doubles(count, to_size(50 + t));
    for (std::size_t i = 0; i < theta.size(); ++i) {
      m[i] = 0.9 * m[i] + 0.1 * grad[i];
      v[i] = 0.999 * v[i] + 0.001 * grad[i] * grad[i];
      const double denominator = std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8;
      theta[i] = theta[i] * (1 - 0.01 * 0.1) - 0.01 / (1 - std::pow(0.9, t)) * m[i] / denominator;
    }
    m = through_eight_bits(m, true);
    v = through_eight_bits(v, false);
    optimizer->update(std::vector{make_tensor(grad, shape, DType::f32, GetParam())}, 0.01);
    eval({}, *optimizer);
    // A moment that is as near to one number as to the next may go the other way in f32.
    const Doubles values = to_doubles(x);
    for (std::size_t i = 0; i < values.size(); ++i) differ += std::abs(values[i] - theta[i]) > 1e-5 ? 1 : 0;
  }
  EXPECT_LE(differ, 10 * count / 100);
  const OptimizerState state = optimizer->state();
  ASSERT_EQ(state.tensors.size(), 4U);
  EXPECT_EQ(state.tensors.at("x.exp_avg.codes").dtype(), DType::u8);
  EXPECT_EQ(state.tensors.at("x.exp_avg.codes").shape(), (Shape{3, 256}));
  EXPECT_EQ(state.tensors.at("x.exp_avg_sq.absmax").shape(), (Shape{3, 1}));
}

TEST(EightBitAdamW, LeavesSmallTensorsIn32Bits) {
  LazyTensor small = make_tensor(random_doubles(10, 1), Shape{10}, DType::f32, Device::cpu());
  LazyTensor large = LazyTensor::zeros(Shape{64, 64}, DType::f32, Device::cpu());
  const auto optimizer = make_optimizer({{"small", &small}, {"large", &large}}, {.name = "adamw_8bit"});
  const OptimizerState state = optimizer->state();
  EXPECT_EQ(state.tensors.at("small.exp_avg").dtype(), DType::f32);
  EXPECT_EQ(state.tensors.at("large.exp_avg.codes").dtype(), DType::u8);
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : state.tensors)
    if (name.starts_with("large"))
      bytes += tensor.numel() * static_cast<std::int64_t>(size_of(tensor.dtype()));
  EXPECT_EQ(bytes, 2 * (4096 + 16 * 4));  // of AdamW: 2 * 4096 * 4
}

// ---- Groups
// --------------------------------------------------------------------------------------------------------

TEST_P(OptimizerKinds, AGroupIsAnOptimizerWithItsOwnNumbers) {
  for (const std::string& name : optimizer_names()) {
    std::map<std::string, LazyTensor> together;
    std::map<std::string, LazyTensor> apart;
    for (const char* parameter : {"q.lora_A", "q.lora_B", "norm"})
      together[parameter] = apart[parameter] =
          make_tensor(random_doubles(12, 7), Shape{3, 4}, DType::f32, GetParam());
    const auto all = make_optimizer(
        {{"q.lora_A", &together["q.lora_A"]},
         {"q.lora_B", &together["q.lora_B"]},
         {"norm", &together["norm"]}},
        {.name = name, .weight_decay = 0.2, .groups = {{"lora_B$", 16}, {"^norm|lora_B", 0.5, 0.0}}});
    const auto one = [&](const char* parameter, double decay) {
      return make_optimizer({{parameter, &apart[parameter]}}, {.name = name, .weight_decay = decay});
    };
    const auto a = one("q.lora_A", 0.2);
    const auto b = one("q.lora_B", 0.2);
    const auto norm = one("norm", 0);
    for (int t = 0; t < 3; ++t) {
      const LazyTensor grad =
          make_tensor(random_doubles(12, to_size(t)), Shape{3, 4}, DType::f32, GetParam());
      all->update({grad, grad, grad}, 0.01);
      a->update({grad}, 0.01);
      b->update({grad}, 0.16);
      norm->update({grad}, 0.005);
      for (Optimizer* optimizer : {all.get(), a.get(), b.get(), norm.get()}) eval({}, *optimizer);
    }
    for (auto& [parameter, tensor] : together)
      expect_close(tensor, to_doubles(apart[parameter]), 1e-6, name + ": " + parameter);
  }
}

TEST(ParameterGroups, AreChecked) {
  LazyTensor x = make_tensor({1, 2}, Shape{2}, DType::f32, Device::cpu());
  const auto with = [&](const ParameterGroup& group) { make_optimizer({{"w", &x}}, {.groups = {group}}); };
  EXPECT_NO_THROW(with({.pattern = "w"}));
  EXPECT_THROW(with({.pattern = "lora"}), ValueError);
  EXPECT_THROW(with({.pattern = "("}), ValueError);
  EXPECT_THROW(with({.pattern = "w", .learning_rate_factor = -1}), ValueError);
  EXPECT_THROW(with({.pattern = "w", .weight_decay = std::numeric_limits<double>::infinity()}), ValueError);
}

INSTANTIATE_TEST_SUITE_P(Devices, OptimizerKinds, ::testing::ValuesIn(tested_devices()), device_test_name);

}  // namespace
}  // namespace caldera::testing
