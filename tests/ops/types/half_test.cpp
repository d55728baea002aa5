// float16 and bfloat16 on every device: conversions bit by bit, and what is computed with them against
// float64.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "tests/support/op_setting.h"
#include "tests/support/reference.h"

namespace caldera::testing {
namespace {

constexpr DType kHalves[] = {DType::f16, DType::bf16};

class Halves : public OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    if (!IsSkipped() && !supports(DType::f16)) GTEST_SKIP() << "no 16-bit storage";
  }
  LazyTensor of_bits(const std::vector<std::uint16_t>& bits, DType type) const {
    return LazyTensor::from_bytes(bits.data(), 2 * bits.size(), type,
                                  Shape{static_cast<std::int64_t>(bits.size())}, device());
  }
  Operand random(const Shape& shape, DType type, std::uint64_t seed, double low = 0.1,
                 double high = 2) const {
    return random_operand(shape, Layout::plain, type, device(), low, high, true, seed);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Halves, ::testing::ValuesIn(op_settings()), op_setting_name);

std::vector<std::uint16_t> all_patterns() {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  return bits;
}

/// By the reference's arithmetic in double, which shares no code with the library's.
double value_of(std::uint16_t bits, DType type) {
  std::vector<std::byte> raw(2);
  std::memcpy(raw.data(), &bits, 2);
  return read_number(raw, type, 0).f;
}
std::uint16_t nearest(double value, DType type) {
  std::vector<std::byte> raw(2);
  write_number(raw, type, 0, floating(value));
  std::uint16_t bits = 0;
  std::memcpy(&bits, raw.data(), 2);
  return bits;
}

std::vector<std::uint16_t> bits_of(const LazyTensor& x) {
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(x.numel()));
  const auto copy = [&](const auto& elements) {
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = elements[i].bits;
  };
  if (x.dtype() == DType::f16)
    copy(x.to_vector<Half>());
  else
    copy(x.to_vector<BFloat16>());
  return bits;
}

TEST_P(Halves, EveryPatternIsWidenedExactly) {
  for (const DType type : kHalves) {
    const std::vector<std::uint16_t> patterns = all_patterns();
    const LazyTensor x = of_bits(patterns, type);
    const std::vector<float> wide = astype(x, DType::f32).to_vector<float>();
    const std::vector<std::uint16_t> moved = bits_of(slice(x, 0, std::nullopt, std::nullopt, -1));
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const double expected = value_of(patterns[i], type);
      const std::uint16_t back = moved[patterns.size() - 1 - i];
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide[i])) << name(type) << " " << i;
        ASSERT_TRUE(std::isnan(value_of(back, type))) << name(type) << " " << i;
        continue;
      }
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
                std::bit_cast<std::uint32_t>(static_cast<float>(expected)))
          << name(type) << " " << i;
      ASSERT_EQ(back, patterns[i]) << name(type);
    }
  }
}

TEST_P(Halves, NumbersAreRoundedToNearestEven) {
  for (const DType type : kHalves) {
    std::vector<float> numbers;
    numbers.reserve(std::size_t{1} << 21);
    std::mt19937 random(1);
    // Any pattern at all, numbers of the type's own range, and what is half way between two neighbours.
    for (int i = 0; i < 1 << 19; ++i)
      numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    std::uniform_int_distribution<std::uint32_t> near(0x32000000, 0x48000000);
    for (int i = 0; i < 1 << 19; ++i) numbers.push_back(std::bit_cast<float>(near(random)));
    for (std::uint32_t i = 0; i + 1 < 0x7c00; ++i) {
      const auto low = value_of(static_cast<std::uint16_t>(i), type);
      const auto high = value_of(static_cast<std::uint16_t>(i + 1), type);
      const auto middle = static_cast<float>((low + high) / 2);
      for (const float x : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e38F)}) {
        numbers.push_back(x);
        numbers.push_back(-x);
      }
    }
    numbers.insert(numbers.end(), {65519.996F, 65520.0F, -65520.0F, 3.4e38F, -3.4e38F, 0.0F, -0.0F});
    const LazyTensor x =
        LazyTensor::from_vector(numbers, Shape{static_cast<std::int64_t>(numbers.size())}, device());
    const LazyTensor narrow = astype(x, type);
    const LazyTensor rounded = astype(astype(x, type), DType::f32);
    eval({narrow, rounded});
    const std::vector<std::uint16_t> bits = bits_of(narrow);
    const std::vector<float> values = rounded.to_vector<float>();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (std::isnan(numbers[i])) {
        ASSERT_TRUE(std::isnan(value_of(bits[i], type)) && std::isnan(values[i])) << name(type) << " " << i;
        continue;
      }
      ASSERT_EQ(bits[i], nearest(numbers[i], type)) << name(type) << " of " << numbers[i];
      ASSERT_EQ(values[i], value_of(bits[i], type)) << name(type) << " of " << numbers[i];
    }
  }
}

TEST_P(Halves, ACastRoundsInsideOfAKernelToo) {
  const Host host(Shape{4}, {1.0009765625 / 3, 100001.0, 1e-9, -7.77});
  const LazyTensor x = upload(host, DType::f32, device());
  for (const DType type : kHalves) {
    const LazyTensor y = astype(astype(x * 1.5, type), DType::f32) * 2.0;
    for (std::size_t i = 0; i < 4; ++i) {
      const float product = static_cast<float>(host.values[i]) * 1.5F;
      EXPECT_EQ(y.to_vector<float>()[i], static_cast<float>(2 * value_of(nearest(product, type), type)));
    }
  }
}

TEST_P(Halves, IntermediateValuesStayWideWhereKernelsAreFused) {
  const LazyTensor x = upload(Host(Shape{1}, {1000}), DType::f16, device());
  const double expected = settings().fusion ? 1000 : HUGE_VAL;
  EXPECT_EQ(download((x * 1024) / 1024)[0], expected);
}

TEST_P(Halves, NumbersTakeTheTypeOfTheTensor) {
  for (const DType type : kHalves) {
    const LazyTensor zeros = upload(Host(Shape{2}, {0, 0}), type, device());
    const double tenth = value_of(nearest(0.1, type), type);
    EXPECT_EQ(download(zeros + 0.1), (std::vector<double>{tenth, tenth}));
    EXPECT_EQ(download(LazyTensor::full(Shape{2}, 0.1, type, device())), (std::vector<double>{tenth, tenth}));
    EXPECT_EQ(download(pad(zeros, {1}, {0}, 0.1)), (std::vector<double>{tenth, 0, 0}));
    EXPECT_EQ(download(concatenate({zeros + 1, zeros})), (std::vector<double>{1, 1, 0, 0}));
    EXPECT_EQ(download(arange(3, type, device())), (std::vector<double>{0, 1, 2}));
  }
}

TEST_P(Halves, RandomNumbersAreThoseOfFloat32) {
  for (const DType type : kHalves) {
    const Shape shape{10007};
    const std::vector<double> uniform = download(random_uniform(shape, 5, type, device()));
    const std::vector<double> wide = download(random_uniform(shape, 5, DType::f32, device()));
    const double steps = type == DType::f16 ? 2048 : 256;
    for (std::size_t i = 0; i < wide.size(); ++i)
      ASSERT_EQ(uniform[i], std::floor(wide[i] * steps) / steps) << "below 1, too";
    EXPECT_TRUE(agrees(random_normal(shape, 5, type, device()),
                       Host(shape, download(random_normal(shape, 5, DType::f32, device()))), {}));
  }
}

/// What `f` gives in float64 on the CPU, for the same numbers.
template <class F>
Host in_double(const std::vector<Operand>& operands, const F& f) {
  std::vector<LazyTensor> inputs;
  inputs.reserve(operands.size());
  for (const Operand& o : operands) inputs.push_back(upload(o.host, DType::f64, Device::cpu()));
  const LazyTensor y = f(inputs);
  return Host(y.shape(), download(y));
}

using TensorList = const std::vector<LazyTensor>&;

TEST_P(Halves, NormsAndSoftmaxAreRoundedOnce) {
  struct Row {
    const char* name;
    LazyTensor (*of)(TensorList);
  };
  const Row rows[] = {
      {"softmax", [](TensorList x) { return softmax(x[0]); }},
      {"log_softmax", [](TensorList x) { return log_softmax(x[0]); }},
      {"softmax along 0", [](TensorList x) { return softmax(x[0], 0); }},
      {"logsumexp", [](TensorList x) { return logsumexp(x[0]); }},
      {"rms_norm", [](TensorList x) { return rms_norm(x[0], 1e-5, x[1]); }},
      {"layer_norm", [](TensorList x) { return layer_norm(x[0], 1e-5, x[1], x[2]); }},
      {"mean", [](TensorList x) { return mean(x[0], 0); }},
      {"sum", [](TensorList x) { return sum(x[0], 1); }},
  };
  for (const DType type : kHalves) {
    std::vector<Pending> all;
    for (const Shape& shape : {Shape{1, 7}, Shape{33, 1}, Shape{7, 33}, Shape{3, 1025}, Shape{2, 5000}}) {
      const Shape row{shape.back()};
      const std::vector<Operand> operands{random(shape, type, 1, 0.5, 400), random(row, type, 2),
                                          random(row, type, 3)};
      const std::vector<LazyTensor> inputs{operands[0].tensor, operands[1].tensor, operands[2].tensor};
      for (const Row& r : rows) {
        // Terms that cancel leave an error in proportion to themselves.
        Within within = half_units(type, 1);
        within.absolute += 1e-3;
        all.push_back({std::string(r.name) + " of " + std::string(name(type)) + " " + shape.to_string(),
                       r.of(inputs), in_double(operands, r.of), within});
        EXPECT_EQ(all.back().result.dtype(), type) << r.name;
      }
    }
    check_all(all);
  }
}

}  // namespace
}  // namespace caldera::testing
