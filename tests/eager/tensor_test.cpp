// Tensor: construction, access, arithmetic, products and normalisations against loops in double.
#include <algorithm>
#include <thread>

#include "engine/graph/graph.h"
#include "engine/runtime/runtime.h"
#include "ops/ops.h"
#include "tests/eager/oracle.h"
#include "tests/support/devices.h"

namespace caldera::v1 {
namespace {

using oracle::doubles;
using oracle::expect_close;
using oracle::random_tensor;

class EagerTensor : public ::testing::TestWithParam<caldera::Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  Device device() const { return Device::from(GetParam()); }
};

TEST_P(EagerTensor, KnowsWhatItWasMadeOf) {
  const Tensor x({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3}, device());
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.rank(), 2);
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.dtype(), DType::f32);
  EXPECT_EQ(x.device(), device());
  EXPECT_TRUE(x.lazy().is_evaluated());
  EXPECT_EQ(x.to_vector(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Tensor(std::vector<std::int32_t>{7, -8}, {2}, device()).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{7, -8}));
  EXPECT_EQ(Tensor::zeros({3}, DType::f32, device()).to_vector(), std::vector<float>(3, 0.0F));
  EXPECT_EQ(Tensor::ones({0, 3}, DType::f32, device()).to_vector().size(), 0U);
  EXPECT_EQ(Tensor::full({2}, 2.5, DType::f32, device()).to_vector(), std::vector<float>(2, 2.5F));
  EXPECT_EQ(x.to_string(), "Tensor(shape=(2, 3), dtype=float32, device=" + device().to_string() + ")");
}

TEST_P(EagerTensor, GivesElements) {
  const Tensor x({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3}, device());
  EXPECT_EQ(x.at({0, 0}), 1.0F);
  EXPECT_EQ(x.at<double>({1, 2}), 6.0);
  EXPECT_EQ(x.at<int>({-1, -2}), 5);
  EXPECT_EQ(Tensor::ones({}, DType::f32, device()).at({}), 1.0F);
  EXPECT_EQ(Tensor({9}, {1}, device()).at<std::int64_t>({0}), 9);
  EXPECT_EQ(Tensor({3.5F}, {1, 1}, device()).item(), 3.5F);
  EXPECT_THROW(x.at({0}), ShapeError);
  EXPECT_THROW(x.at({2, 0}), ShapeError);
  EXPECT_THROW(x.at({0, -4}), ShapeError);
  EXPECT_THROW(x.item(), ShapeError);
}

TEST_P(EagerTensor, GivesElementsOfEveryType) {
  for (const DType type : kAllDTypes) {
    if (!backend(GetParam()).supports(type)) continue;
    const Tensor x = Tensor::ones({2}, type, device());
    EXPECT_EQ(x.at({1}), 1.0F) << name(type);
    EXPECT_EQ(x.at<int>({0}), 1) << name(type);
    EXPECT_EQ(Tensor::ones({1}, type, device()).item(), 1.0F) << name(type);
  }
}

TEST_P(EagerTensor, ElementsMayBeReadByManyThreads) {
  const Tensor x = random_tensor({100}, 1, device());
  const std::vector<float> expected = x.to_vector();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::int64_t i = 0; i < 100; ++i) wrong += x.at({i}) != expected[static_cast<std::size_t>(i)];
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(EagerTensor, Calculates) {
  const Tensor a = random_tensor({7, 1, 5}, 1, device());
  const Tensor b = random_tensor({3, 5}, 2, device());
  const std::vector<double> x = doubles(a);
  const std::vector<double> y = doubles(b);
  std::vector<double> sum, difference, product, quotient;
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 5; ++k) {
        sum.push_back(x[i * 5 + k] + y[j * 5 + k]);
        difference.push_back(x[i * 5 + k] - y[j * 5 + k]);
        product.push_back(x[i * 5 + k] * y[j * 5 + k]);
        quotient.push_back(x[i * 5 + k] / y[j * 5 + k]);
      }
  EXPECT_EQ((a + b).shape(), (Shape{7, 3, 5}));
  expect_close(a + b, sum, 1e-6);
  expect_close(a - b, difference, 1e-6);
  expect_close(a * b, product, 1e-6);
  expect_close(a / b, quotient, 1e-6);
}

TEST_P(EagerTensor, CalculatesWithNumbers) {
  const Tensor x({1.0F, 2.0F, 4.0F}, {3}, device());
  EXPECT_EQ((x * 2 + 1).to_vector(), (std::vector<float>{3, 5, 9}));
  EXPECT_EQ((1 - x / 2.0).to_vector(), (std::vector<float>{0.5F, 0, -1}));
  EXPECT_EQ((8.0F / x).to_vector(), (std::vector<float>{8, 4, 2}));
  EXPECT_EQ((3 * -x - 1).to_vector(), (std::vector<float>{-4, -7, -13}));
  EXPECT_EQ((2 + x).to_vector(), (std::vector<float>{3, 4, 6}));
  // A whole number leaves integers what they are.
  EXPECT_EQ((Tensor({1, 2}, {2}, device()) * 3).to_vector<std::int32_t>(), (std::vector<std::int32_t>{3, 6}));
}

TEST_P(EagerTensor, MultipliesMatrices) {
  for (const auto& [m, k, n] : {std::array{1, 1, 1}, {7, 33, 5}, {1, 129, 64}, {33, 7, 1}}) {
    const Tensor a = random_tensor({m, k}, 3, device());
    const Tensor b = random_tensor({k, n}, 4, device());
    expect_close(a.matmul(b),
                 oracle::product(doubles(a), doubles(b), static_cast<std::size_t>(m),
                                 static_cast<std::size_t>(k), static_cast<std::size_t>(n)),
                 1e-5);
    expect_close(b.transpose().matmul(a.transpose()).transpose(),
                 oracle::product(doubles(a), doubles(b), static_cast<std::size_t>(m),
                                 static_cast<std::size_t>(k), static_cast<std::size_t>(n)),
                 1e-5);
  }
}

TEST_P(EagerTensor, NormalisesTheLastAxis) {
  for (const std::int64_t width : {1, 7, 33, 1025}) {
    const Tensor x = random_tensor({2, 3, width}, 5, device()) * 4.0;
    const std::vector<double> values = doubles(x);
    std::vector<double> softmax, layer_norm, rms_norm;
    const auto n = static_cast<std::size_t>(width);
    for (std::size_t row = 0; row < 6; ++row) {
      const double* from = values.data() + row * n;
      const double top = *std::max_element(from, from + n);
      double total = 0, mean = 0, squares = 0, variance = 0;
      for (std::size_t i = 0; i < n; ++i) {
        total += std::exp(from[i] - top);
        mean += from[i] / static_cast<double>(n);
        squares += from[i] * from[i] / static_cast<double>(n);
      }
      for (std::size_t i = 0; i < n; ++i)
        variance += (from[i] - mean) * (from[i] - mean) / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i) {
        softmax.push_back(std::exp(from[i] - top) / total);
        layer_norm.push_back((from[i] - mean) / std::sqrt(variance + 1e-5));
        rms_norm.push_back(from[i] / std::sqrt(squares + 1e-5));
      }
    }
    expect_close(x.softmax_stable(), softmax, 1e-5);
    expect_close(x.softmax_fused(), softmax, 1e-5);
    // An only element differs from its mean by rounding, which layer_norm then magnifies.
    expect_close(x.layer_norm(1e-5), layer_norm, 1e-4);
    expect_close(x.rms_norm(1e-5), rms_norm, 1e-5);
    expect_close(x.rms_norm_fused(1e-5), rms_norm, 1e-5);
  }
}

TEST_P(EagerTensor, SoftmaxIsStable) {
  const Tensor x({1000.0F, 1001.0F, -1000.0F}, {3}, device());
  expect_close(x.softmax_stable(), {1 / (1 + std::exp(1.0)), 1 / (1 + std::exp(-1.0)), 0}, 1e-6);
}

TEST_P(EagerTensor, EqualsLazy) {
  const Tensor x = random_tensor({4, 33}, 6, device());
  const Tensor w = random_tensor({33, 9}, 7, device());
  const Tensor eager = (x.rms_norm(1e-6).matmul(w) * 0.5 + 1.0).softmax_stable();
  const LazyTensor lazy =
      caldera::softmax(caldera::matmul(caldera::rms_norm(x.lazy(), 1e-6), w.lazy()) * 0.5 + 1.0);
  EXPECT_FALSE(lazy.is_evaluated());
  expect_close(eager, doubles(to_tensor(lazy)), 1e-6);
  EXPECT_TRUE(lazy.is_evaluated());
}

TEST_P(EagerTensor, BridgesToLazyWithoutCopying) {
  const Tensor x = random_tensor({3}, 8, device());
  const LazyTensor leaf = from_tensor(x);
  EXPECT_EQ(leaf.node_id(), x.lazy().node_id());
  EXPECT_EQ(add_tensor_to_graph(leaf * 2, x).node_id(), x.lazy().node_id());
}

TEST_P(EagerTensor, MovesBetweenDevices) {
  const Tensor x = random_tensor({3, 5}, 9, device());
  const Tensor there = x.to_device(Device::cpu());
  EXPECT_EQ(there.device(), Device::cpu());
  EXPECT_EQ(there.to_vector(), x.to_vector());
  EXPECT_EQ(there.to_device(device()).to_vector(), x.to_vector());
}

TEST_P(EagerTensor, RefusesAtTheCall) {
  const Tensor a = random_tensor({2, 3}, 1, device());
  const Tensor b = random_tensor({4, 5}, 2, device());
  try {
    a.matmul(b);
    FAIL() << "accepted";
  } catch (const ShapeError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("(2, 3)"), std::string::npos) << message;
    EXPECT_NE(message.find("(4, 5)"), std::string::npos) << message;
  }
  EXPECT_THROW(a + b, ShapeError);
  EXPECT_THROW(a.reshape({7}), ShapeError);
  EXPECT_THROW(a.lora_forward_fused(b, b, 1.0), ShapeError);
  EXPECT_THROW(Tensor({1.0F, 2.0F}, {3}, device()), ShapeError);
  EXPECT_THROW(a.to_vector<std::int32_t>(), DTypeError);
}

TEST(EagerEmptyTensor, SaysThatItIsEmpty) {
  EXPECT_FALSE(Tensor().defined());
  EXPECT_THROW(Tensor().shape(), Error);
  EXPECT_THROW(Var().tensor(), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, EagerTensor, ::testing::ValuesIn(caldera::testing::tested_devices()),
                         caldera::testing::device_test_name);

}  // namespace
}  // namespace caldera::v1
