// Samples of the table of operations against the golden files: results in every type, on every device;
// gradients and second gradients in f64.
#include "tests/golden/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/autodiff/autodiff.h"
#include "engine/device/backend.h"
#include "tests/ops/operations/every_operation.h"

namespace caldera::testing {
namespace {

using catalogue::Operation;

/// How far a result may be off, relative to the largest of the results: a few roundings of the type, and for
/// Vulkan's f32 the precision that its elementary functions must have.
double tolerance(DType type, const Device& device) {
  switch (type) {
    case DType::f64:
      return device.kind == DeviceKind::vulkan ? 1e-9 : 1e-12;
    case DType::f32:
      return device.kind == DeviceKind::vulkan ? 2e-5 : 3e-6;
    case DType::f16:
      return 3e-3;
    case DType::bf16:
      return 2.5e-2;
    default:
      return 0;
  }
}

double largest(const std::vector<double>& values) {
  double out = 1;
  for (const double value : values) {
    if (std::isfinite(value)) out = std::max(out, std::abs(value));
  }
  return out;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& golden, double relative) {
  ASSERT_EQ(actual.size(), golden.size());
  const double allowed = relative * largest(golden);
  for (std::size_t i = 0; i < golden.size(); ++i) {
    if (std::isnan(golden[i]) && std::isnan(actual[i])) continue;
    if (golden[i] == actual[i]) continue;  // infinities
    ASSERT_LE(std::abs(actual[i] - golden[i]), allowed)
        << "element " << i << ": " << actual[i] << ", golden " << golden[i];
  }
}

/// The types in which a record is replayed. One in f64 stands for every floating type: the CPU replays it in
/// all of them, Vulkan in f32 and, since each shape and type costs it a kernel, in the other types by turns.
std::vector<DType> replayed_types(const Operation& operation, const GoldenCall& call, const Device& device) {
  std::vector<DType> all{call.type};
  if (call.type == DType::f64) {
    static constexpr DType kOthers[] = {DType::f64, DType::f16, DType::bf16};
    all = {DType::f32};
    if (device.kind == DeviceKind::vulkan)
      all.push_back(kOthers[call.index % 3]);
    else
      all.insert(all.end(), std::begin(kOthers), std::end(kOthers));
  }
  std::erase_if(all, [&](DType type) {
    return !backend(device).supports(type) || (call.type == DType::f64 && !operation.types.contains(type));
  });
  return all;
}

class GoldenOnDevice : public OperationDeviceTest {};

TEST_P(GoldenOnDevice, Results) {
  std::size_t replayed = 0;
  for (const GoldenCall& call : golden_calls(operation())) {
    const GoldenRecord* record = golden_record(operation(), call);
    if (record == nullptr) continue;
    for (const DType type : replayed_types(operation(), call, device())) {
      SCOPED_TRACE(std::string(name(type)) + " " + call.sample.to_string());
      const auto results =
          operation().call(operands_of(call.sample, type, Layout::plain, device()), call.sample.arguments);
      ASSERT_EQ(results.size(), record->results.size());
      for (std::size_t k = 0; k < results.size(); ++k) {
        const DType held = results[k].dtype();
        // Of a result in f64 computed from f32 only what f32 holds is right.
        const DType precision =
            is_floating(type) && is_floating(held) && size_of(type) < size_of(held) ? type : held;
        expect_near(numbers(results[k]), record->results[k], tolerance(precision, device()));
      }
      ++replayed;
    }
  }
  RecordProperty("replayed", static_cast<int>(replayed));
  if (replayed == 0) GTEST_SKIP() << "PyTorch has no counterpart";
}

LazyTensor weighted(std::span<const LazyTensor> tensors) {
  LazyTensor total;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const LazyTensor weights = LazyTensor::from_vector(golden_weights(tensors[k].numel(), k),
                                                       tensors[k].shape(), tensors[k].device());
    const LazyTensor term = sum(tensors[k] * weights);
    total = total.defined() ? total + term : term;
  }
  return total;
}

std::vector<LazyTensor> gradients(const LazyTensor& total, std::span<const LazyTensor> variables) {
  const LazyTensor one = ones_like(total);
  return vjp({&total, 1}, variables, {&one, 1});
}

/// What PyTorch's own gradients are off by, where that is more than roundings. Its trigamma(-1.28125) is
/// wrong in the eleventh digit: the series says 15.96892476676229, as the engine does,
/// PyTorch 15.96892476658609.
double golden_error(std::string_view operation) { return operation == "digamma" ? 5e-11 : 0; }

/// In f64, on every device.
TEST_P(GoldenOnDevice, GradientsAndSecondGradients) {
  const bool vulkan = device().kind == DeviceKind::vulkan;
  if (!backend(device()).supports(DType::f64)) GTEST_SKIP() << "no float64 on this device";
  const double first_error = vulkan ? 1e-8 : std::max(1e-11, golden_error(operation().name));
  const double second_error = vulkan ? 1e-7 : 1e-10;
  std::size_t replayed = 0;
  for (const GoldenCall& call : golden_calls(operation())) {
    const GoldenRecord* record = golden_record(operation(), call);
    if (record == nullptr || record->first.empty()) continue;
    SCOPED_TRACE(call.sample.to_string());
    const auto operands = operands_of(call.sample, call.type, Layout::plain, device());
    std::vector<LazyTensor> variables;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (call.sample.operands[i].varies()) variables.push_back(operands[i]);
    }
    const auto results = operation().call(operands, call.sample.arguments);
    const auto first = gradients(weighted(results), variables);
    ASSERT_EQ(first.size(), record->first.size());
    const auto second = gradients(weighted(first), variables);
    for (std::size_t i = 0; i < first.size(); ++i) {
      expect_near(numbers(first[i]), record->first[i], first_error);
      expect_near(numbers(second[i]), record->second[i], second_error);
    }
    ++replayed;
  }
  if (replayed == 0) GTEST_SKIP() << "PyTorch has no gradient of it";
}

/// How many calls the golden files lack, and why. Every other call has a record: the skips above are these.
struct Lacking {
  std::string_view operation;
  std::size_t calls;
  std::string_view why;
};
constexpr Lacking kLacking[] = {
    {"adaptive_avg_pool", 2, "PyTorch refuses an empty batch, and an extent of 0"},
    {"adaptive_max_pool", 2, "the same"},
    {"adaptive_max_pool_with_indices", 2, "the same"},
    {"alpha_dropout", 3, "random, but for the probabilities 0 and 1"},
    {"at", 84, "PyTorch has no slices of negative steps"},
    {"bitwise_left_shift", 6, "PyTorch leaves counts beyond the width to the processor"},
    {"bitwise_right_shift", 6, "the same"},
    {"channel_shuffle", 8, "PyTorch refuses a batch of nothing"},
    {"channel_dropout", 8, "random, but for the probabilities 0 and 1"},
    {"col2im", 1, "PyTorch has it of images alone"},
    {"conv", 1, "PyTorch refuses a batch of nothing"},
    {"conv_transpose", 1, "the same"},
    {"det", 3, "PyTorch's gradient fails for singular matrices"},
    {"dropout", 8, "random, but for the probabilities 0 and 1"},
    {"fft", 1, "PyTorch refuses a batch of nothing"},
    {"grid_sample", 1, "PyTorch refuses a batch of nothing"},
    {"heaviside", 16, "PyTorch's is not differentiable"},
    {"hfft", 1, "PyTorch refuses a batch of nothing"},
    {"histc", 1, "PyTorch refuses no elements"},
    {"ifft", 1, "PyTorch refuses a batch of nothing"},
    {"ihfft", 1, "PyTorch refuses a batch of nothing"},
    {"im2col", 1, "PyTorch has it of images alone"},
    {"instance_norm", 3, "PyTorch refuses a batch of nothing"},
    {"irfft", 1, "the same"},
    {"local_response_norm", 1, "the same"},
    {"matrix_rank", 3, "PyTorch refuses empty matrices"},
    {"median", 1, "PyTorch refuses no rows"},
    {"nanmedian", 1, "the same"},
    {"nanquantile", 1, "the same"},
    {"pad_circular", 2, "PyTorch has no bool"},
    {"pad_reflect", 2, "PyTorch has no bool"},
    {"pad_replicate", 2, "PyTorch has no bool"},
    {"pixel_shuffle", 8, "PyTorch refuses a batch of nothing"},
    {"pixel_unshuffle", 8, "the same"},
    {"pow", 40, "PyTorch refuses negative integer powers of integers"},
    {"quantile", 1, "PyTorch refuses no rows"},
    {"random_bernoulli", 8, "random: held to its distribution in tests/ops"},
    {"random_categorical", 13, "random"},
    {"random_exponential", 16, "random"},
    {"random_gumbel", 16, "random"},
    {"random_normal", 20, "random"},
    {"random_permutation", 5, "random"},
    {"random_randint", 24, "random"},
    {"random_truncated_normal", 32, "random"},
    {"random_uniform", 20, "random"},
    {"renorm", 1, "PyTorch refuses no rows"},
    {"rfft", 1, "PyTorch refuses a batch of nothing"},
    {"rrelu", 2, "random"},
    {"std", 5, "PyTorch has no corrections but 0 and 1"},
    {"stop_gradient", 64, "a rule of differentiation: tests/autodiff"},
    {"var", 5, "PyTorch has no corrections but 0 and 1"},
};

TEST(GoldenFiles, LackOnlyWhatPyTorchLacks) {
  std::size_t records = 0;
  for (const Operation* operation : catalogue::operations()) {
    std::size_t missing = 0;
    for (const GoldenCall& call : golden_calls(*operation)) {
      const GoldenRecord* record = golden_record(*operation, call);
      missing += record == nullptr ? 1 : 0;
      records += record == nullptr ? 0 : 1;
    }
    const auto* known = std::find_if(std::begin(kLacking), std::end(kLacking),
                                     [&](const Lacking& row) { return row.operation == operation->name; });
    EXPECT_EQ(missing, known == std::end(kLacking) ? 0 : known->calls) << operation->name;
  }
  EXPECT_GE(records, 5000u);
}

CALDERA_FOR_EVERY_OPERATION_AND_DEVICE(GoldenOnDevice);

}  // namespace
}  // namespace caldera::testing
