// Transforms of every operation on other devices than the CPU, where they are held to differences and loops:
// derivatives of both modes and vmap give what they give there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/autodiff/autodiff.h"
#include "engine/autodiff/jvp.h"
#include "engine/autodiff/vmap.h"
#include "tests/ops/operations/every_operation.h"
#include "tests/support/operation_calls.h"

namespace caldera::testing {
namespace {

using Tensors = std::vector<LazyTensor>;

bool is_full(const catalogue::Sample& sample) {
  return !sample.operands.empty() &&
         std::all_of(sample.operands.begin(), sample.operands.end(),
                     [](const catalogue::Operand& operand) { return operand.shape.numel() > 0; });
}

/// Results of vjp, jvp and vmap of the call, those that it has.
Tensors transformed(const catalogue::Operation& operation, const catalogue::Sample& sample, DType type,
                    Device device) {
  Tensors out;
  const Tensors operands = operands_of(sample, type, Layout::plain, device);
  if (type == DType::f64 && operation.gradient != catalogue::Gradient::none) {
    Tensors variables, tangents;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!sample.operands[i].varies() || !is_floating(operands[i].dtype())) continue;
      variables.push_back(operands[i]);
      tangents.push_back(full_like(operands[i], 0.75));
    }
    const Tensors results = operation.call(operands, sample.arguments);
    const LazyTensor g = full_like(results[0], -1.25);
    if (!variables.empty() && is_floating(results[0].dtype())) {
      const Tensors first = vjp({results.data(), 1}, variables, {&g, 1});
      out.insert(out.end(), first.begin(), first.end());
      out.push_back(jvp({results.data(), 1}, variables, tangents)[0]);
    }
  }
  Tensors examples;
  for (const LazyTensor& x : operands) examples.push_back(stack({x, x}));
  const VectorFunction call = [&](std::span<const LazyTensor> x) {
    return operation.call(x, sample.arguments);
  };
  const Tensors mapped = vmap(call, 0, 0)(examples);
  out.insert(out.end(), mapped.begin(), mapped.end());
  return out;
}

class TransformsOnDevice : public OperationDeviceTest {};

TEST_P(TransformsOnDevice, GiveWhatTheyGiveOnTheCpu) {
  if (device().kind == DeviceKind::cpu) GTEST_SKIP() << "there by differences and loops: Table/OfOperation";
  DType type = DType::boolean;
  for (const DType t : {DType::f64, DType::i32, DType::f32}) {
    if (operation().types.contains(t) && backend(device()).supports(t)) {
      type = t;
      break;
    }
  }
  bool tried = false;
  for (const catalogue::Sample& sample : operation().samples(operation())) {
    if (!is_full(sample) || tried) continue;
    SCOPED_TRACE(sample.to_string());
    const Tensors actual = transformed(operation(), sample, type, device());
    const Tensors expected = transformed(operation(), sample, type, Device::cpu());
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t k = 0; k < actual.size(); ++k) {
      const std::vector<double> a = numbers(actual[k]), b = numbers(expected[k]);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
        ASSERT_NEAR(a[i], b[i], (type == DType::f32 ? 1e-4 : 1e-9) * (1 + std::abs(b[i]))) << "result " << k;
      }
    }
    tried = true;
  }
  if (!tried) GTEST_SKIP() << "has no operands";
}
CALDERA_FOR_EVERY_OPERATION_AND_DEVICE(TransformsOnDevice);

}  // namespace
}  // namespace caldera::testing
