// Every operation of the table under compiled(): traced on operands of other values, replayed on the
// sample's, it gives the bits of the plain call. So no operation may put the value of an operand into its
// graph.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/jit/compiled.h"
#include "tests/ops/operations/every_operation.h"
#include "tests/support/operation_calls.h"

namespace caldera::testing {
namespace {

using Tensors = std::vector<LazyTensor>;

class CompiledOperation : public OperationTest {};

/// Operands of the same kinds, and other values.
Tensors others_like(const Tensors& operands) {
  Tensors others;
  for (const LazyTensor& x : operands)
    others.push_back(is_floating(x.dtype()) ? x * 0.5 : LazyTensor::zeros(x.shape(), x.dtype(), x.device()));
  eval(others);
  return others;
}

TEST_P(CompiledOperation, ReplaysOnOtherValues) {
  const Device cpu = Device::cpu();
  for (const catalogue::Sample& sample : samples()) {
    DType type = DType::boolean;
    for (const DType t : {DType::f64, DType::i32, DType::f32}) {
      if (operation().types.contains(t)) {
        type = t;
        break;
      }
    }
    SCOPED_TRACE(sample.to_string());
    int calls = 0;
    const VectorFunction f = compiled(VectorFunction([&](std::span<const LazyTensor> x) {
      ++calls;
      return operation().call(x, sample.arguments);
    }));
    const Tensors operands = operands_of(sample, type, Layout::plain, cpu);
    const Tensors expected = operation().call(operands, sample.arguments);
    eval(expected);
    try {
      (void)f(others_like(operands));
    } catch (const Error&) {  // a matrix that has no factor, say: traced all the same
    }
    const Tensors actual = f(operands);
    EXPECT_EQ(calls, 1);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t k = 0; k < actual.size(); ++k) {
      EXPECT_EQ(actual[k].shape(), expected[k].shape());
      EXPECT_EQ(actual[k].dtype(), expected[k].dtype());
      const std::vector<double> a = numbers(actual[k]), b = numbers(expected[k]);
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
            << "result " << k << ", element " << i << ": " << a[i] << ", expected " << b[i];
    }
  }
}
CALDERA_FOR_EVERY_OPERATION(CompiledOperation);

}  // namespace
}  // namespace caldera::testing
