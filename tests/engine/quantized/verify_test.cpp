// The plan verifier against damaged steps over quantised matrices.
#include "engine/plan/verify.h"

#include <gtest/gtest.h>

#include "engine/runtime/evaluate.h"
#include "tests/engine/quantized/golden_matrices.h"
#include "tests/support/messages.h"

namespace caldera::testing {
namespace {

struct QuantizedDamage {
  const char* what;
  const char* mentions;
  void (*damage)(Plan& plan);
};

QuantizedStep& quantized(Plan& plan) { return plan.steps[0].as<QuantizedStep>(); }

/// Of a product (2, 512) by (3, 512) affine weights: x, codes, scales, biases, out.
const QuantizedDamage kQuantizedDamages[] = {
    {"a format that there is not", "a quantised format that does not exist",
     [](Plan& p) { quantized(p).what.layout.format = static_cast<QuantizedFormat>(kQuantizedFormatCount); }},
    {"no group", "matrices that the quantised format does not have",
     [](Plan& p) { quantized(p).what.layout.group = 0; }},
    {"other rows", "a space that is not that of the quantised matrix",
     [](Plan& p) { quantized(p).what.rows = 4; }},
    {"several matrices", "several quantised matrices, and nothing says which",
     [](Plan& p) { quantized(p).what.matrices = 2; }},
    {"indices that are no operand", "a quantised part that is not dense",
     [](Plan& p) { quantized(p).what.is_indexed = true; }},
    {"rows in place of a product", "a space that is not that of the quantised matrix",
     [](Plan& p) { quantized(p).what.work = QuantizedWork::take_rows; }},
    {"sums over rows", "operand 0 varies along dimension 2",
     [](Plan& p) { quantized(p).what.work = QuantizedWork::transposed_product; }},
    {"codes that are not dense", "a quantised part that is not dense",
     [](Plan& p) { p.steps[0].operands[1].strides[1] = 63; }},
    {"biases that are not dense", "a quantised part that is not dense",
     [](Plan& p) { p.steps[0].operands[3].strides[2] = 2; }},
    {"codes of another type", "operand 1 has the wrong type",
     [](Plan& p) { p.buffers[1].dtype = DType::f32; }},
    {"codes behind the end", "operand 1", [](Plan& p) { p.steps[0].operands[1].offset = 1; }},
    {"scales in front of the beginning", "operand 2", [](Plan& p) { p.steps[0].operands[2].offset = -1; }},
    {"a result that varies along the sum", "operand 4 varies along dimension 2",
     [](Plan& p) { p.steps[0].operands[4].strides[2] = 1; }},
    {"rows of the result that overlap", "a quantised result that is not dense",
     [](Plan& p) { p.steps[0].operands[4].strides[0] = 1; }},
    {"work that there is none", "quantised work that does not exist",
     [](Plan& p) { quantized(p).what.work = static_cast<QuantizedWork>(4); }},
    {"another type", "a quantised step of another type", [](Plan& p) { p.steps[0].dtype = DType::f16; }},
};

TEST(QuantizedPlans, DamageIsFound) {
  for (const GoldenMatrix& m : golden_matrices()) {
    if (m.name != "affine4_64") continue;
    const LazyTensor x = LazyTensor::ones(Shape{2, 512}, DType::f32, Device::cpu());
    eval({x});
    const auto sound = plan_for({quantized_matmul(x, upload(m, Device::cpu()))});
    ASSERT_EQ(sound->steps.size(), 1U);
    EXPECT_NO_THROW(verify_plan(*sound));
    for (const QuantizedDamage& damage : kQuantizedDamages) {
      SCOPED_TRACE(damage.what);
      Plan plan = *sound;
      damage.damage(plan);
      EXPECT_MENTIONS(message_of<PlanError>([&] { verify_plan(plan); }), damage.mentions);
    }
    return;
  }
  FAIL() << "no golden matrix affine4_64";
}

}  // namespace
}  // namespace caldera::testing
