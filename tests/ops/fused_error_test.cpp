// What fusion does to errors: a fused result may be at most twice as far from the decomposition in f64 as the
// unfused one is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "ops/loss/cross_entropy.h"
#include "ops/ops.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Tensors = std::vector<LazyTensor>;

struct ErrorProgram {
  const char* name;
  std::vector<Shape> shapes;
  std::function<Tensors(const Tensors&)> build;
};

Tensors with_gradients(const LazyTensor& y, const Tensors& inputs) {
  const LazyTensor weights = cos(astype(iota({y.numel()}, 0, DType::i32, y.device()), y.dtype()) * 0.7);
  Tensors out = grad(sum(y * reshape(weights, y.shape())), inputs);
  out.push_back(y);
  return out;
}

LazyTensor attention(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v, double spread) {
  const std::int64_t length = q.shape(-2);
  const LazyTensor i = expand_dims(arange(length, DType::i32, q.device()), -1);
  const LazyTensor seen = arange(length, DType::i32, q.device()) <= i;
  return matmul(softmax(where(seen, matmul(q, transpose(k)) * spread, -1e9)), v);
}

const ErrorProgram kPrograms[] = {
    {"softmax", {{33, 257}}, [](const Tensors& x) { return with_gradients(softmax(x[0] * 5.0), x); }},
    {"log_softmax", {{33, 257}}, [](const Tensors& x) { return with_gradients(log_softmax(x[0] * 5.0), x); }},
    {"rms_norm",
     {{65, 300}, {300}},
     [](const Tensors& x) { return with_gradients(rms_norm(x[0], 1e-5, x[1]), x); }},
    {"layer_norm",
     {{65, 300}, {300}, {300}},
     [](const Tensors& x) { return with_gradients(layer_norm(x[0] + 3.0, 1e-5, x[1], x[2]), x); }},
    {"swiglu", {{33, 129}, {33, 129}}, [](const Tensors& x) { return with_gradients(silu(x[0]) * x[1], x); }},
    {"cross_entropy",
     {{40, 500}},
     [](const Tensors& x) {
       std::vector<std::int32_t> targets(40);
       for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<std::int32_t>(i * 7 % 500);
       const LazyTensor loss =
           mean_cross_entropy(x[0] * 3.0, LazyTensor::from_vector(targets, {40}, x[0].device()));
       return Tensors{loss, grad(loss, x[0])};
     }},
    {"low-rank product",
     {{65, 128}, {128, 96}, {128, 8}, {8, 96}, {96}},
     [](const Tensors& x) {
       return with_gradients(silu(matmul(x[0], x[1]) + lora_delta(x[0], x[2], x[3], 0.5) + x[4]), x);
     }},
    {"attention",
     {{2, 3, 65, 32}, {2, 3, 65, 32}, {2, 3, 65, 40}},
     [](const Tensors& x) { return with_gradients(attention(x[0], x[1], x[2], 0.18), x); }},
    {"attention with large scores",
     {{2, 1, 65, 32}, {2, 1, 65, 32}, {2, 1, 65, 40}},
     [](const Tensors& x) { return with_gradients(attention(x[0], x[1], x[2], 4.0), x); }},
    {"reductions behind products",
     {{64, 96}, {96, 70}},
     [](const Tensors& x) {
       const LazyTensor y = tanh(matmul(x[0], x[1]) * 0.2);
       return with_gradients(sum(square(y), -1) + max(y, -1), x);
     }},
};

std::vector<double> values(const ErrorProgram& program, std::size_t which, DType dtype, Device device,
                           bool fusion) {
  const ScopedSettings scope(fusion);
  Tensors inputs;
  for (std::size_t i = 0; i < program.shapes.size(); ++i) {
    std::vector<float> start(static_cast<std::size_t>(program.shapes[i].numel()));
    for (std::size_t k = 0; k < start.size(); ++k) {
      start[k] = static_cast<float>(std::sin(0.37 * static_cast<double>(k * (i + 2) + i)) +
                                    0.3 * std::cos(1.9 * static_cast<double>(k)));
    }
    const std::vector<double> wide(start.begin(), start.end());
    inputs.push_back(dtype == DType::f64 ? LazyTensor::from_vector(wide, program.shapes[i], device)
                                         : LazyTensor::from_vector(start, program.shapes[i], device));
  }
  const LazyTensor out = program.build(inputs).at(which);
  if (dtype == DType::f64) return out.to_vector<double>();
  const std::vector<float> narrow = out.to_vector<float>();
  return {narrow.begin(), narrow.end()};
}

struct Errors {
  double largest = 0, mean = 0;  // mean: root of the mean square
};
Errors errors(const std::vector<double>& got, const std::vector<double>& wanted) {
  Errors e;
  double squares = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double d = std::abs(got[i] - wanted[i]);
    e.largest = std::max(e.largest, d);
    squares += d * d;
  }
  e.mean = std::sqrt(squares / static_cast<double>(wanted.size()));
  return e;
}

class FusedErrors : public ::testing::TestWithParam<Device> {};
INSTANTIATE_TEST_SUITE_P(Devices, FusedErrors, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST_P(FusedErrors, AtMostTwiceThoseOfTheDecomposition) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  for (const ErrorProgram& program : kPrograms) {
    const std::size_t outputs = program.shapes.size() + 1;
    for (std::size_t which = 0; which < outputs; ++which) {
      SCOPED_TRACE(std::string(program.name) + ", result " + std::to_string(which));
      const std::vector<double> wanted = values(program, which, DType::f64, Device::cpu(), false);
      const Errors plain = errors(values(program, which, DType::f32, GetParam(), false), wanted);
      const Errors fused = errors(values(program, which, DType::f32, GetParam(), true), wanted);
      double scale = 0;
      for (double w : wanted) scale = std::max(scale, std::abs(w));
      // Where the plain result happens to be exact: a unit in the last place of the largest element.
      const double least = scale * 1.2e-7;
      EXPECT_LE(fused.mean, 2 * plain.mean + least / 4);
      EXPECT_LE(fused.largest, 2 * plain.largest + least);
    }
  }
}

}  // namespace
}  // namespace caldera::testing
