// The shaders that kernels lower to compile and are valid SPIR-V, whatever the device: no device is needed
// here.
#include <gtest/gtest.h>

#include <memory>
#include <spirv-tools/libspirv.hpp>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/vulkan/glsl/epilogue.h"
#include "engine/device/vulkan/glsl/region_shader.h"
#include "engine/device/vulkan/pipelines/shader_compiler.h"
#include "engine/device/vulkan/spirv/finish.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

std::string validate(const std::string& text, const std::string& name) {
  const std::vector<std::uint32_t> words = vulkan::spirv::finish(vulkan::compile_glsl(text, name), name);
  std::string message;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  tools.SetMessageConsumer(
      [&](spv_message_level_t, const char*, const spv_position_t&, const char* m) { message += m; });
  spvtools::ValidatorOptions validator;
  validator.SetScalarBlockLayout(true);
  if (tools.Validate(words.data(), words.size(), validator)) return {};
  return message + "\n" + text;
}

std::string validate(const Kernel& kernel, const KernelVariant& variant, const GlslOptions& options) {
  return validate(to_glsl(kernel, variant, options), kernel.name);
}

KernelVariant elementwise(const Kernel& kernel, Access access, int rank) {
  KernelVariant v;
  v.rank = static_cast<std::uint8_t>(rank);
  v.access.assign(kernel.inputs.size() + static_cast<std::size_t>(kernel.index_count) + kernel.outputs.size(),
                  access);
  return v;
}

constexpr GlslOptions kPlain{};
constexpr GlslOptions kRich{.subgroup_size = 32, .exact_subgroup_size = true, .preserve_nan_inf = true};
constexpr GlslOptions kLoose{.subgroup_size = 32, .exact_subgroup_size = false, .preserve_nan_inf = true};

TEST(VulkanGlsl, EveryOperationIsValid) {
  for (int o = static_cast<int>(ScalarOp::neg); o <= static_cast<int>(ScalarOp::select); ++o) {
    const auto op = static_cast<ScalarOp>(o);
    for (DType type : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean}) {
      if (!accepts(op, type)) continue;
      const auto kernel = one_op_kernel(op, type, value_type(op, type));
      EXPECT_EQ(validate(*kernel, elementwise(*kernel, Access::linear, 1), kRich), "")
          << info(op).name << " of " << name(type);
    }
  }
}

TEST(VulkanGlsl, MemoryOfEveryTypeIsValid) {
  for (DType type : kAllDTypes) {
    KernelBuilder b("copy");
    b.store(b.cast(b.load(type), type), type);
    const auto kernel = b.finish();
    EXPECT_EQ(validate(*kernel, elementwise(*kernel, Access::strided, 2), kRich), "") << name(type);
  }
}

TEST(VulkanGlsl, EveryAccessAndFormIsValid) {
  for (DType type : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean}) {
    const auto copy = one_op_kernel(ScalarOp::cast, type, type);
    for (Access access : {Access::linear, Access::strided, Access::scalar}) {
      for (int rank : {0, 1, 3, 8}) {
        EXPECT_EQ(validate(*copy, elementwise(*copy, access, rank), kPlain), "") << name(type) << rank;
      }
    }
    for (const CombineFacts& c : kCombines) {
      // Booleans have reductions of their own: "any" and "all".
      if (type != DType::boolean && !accepts(c.combine, type)) continue;
      const auto reduction = reduce_kernel(c.combine, type);
      for (RegionForm form : {RegionForm::reduce_per_thread, RegionForm::reduce_per_group}) {
        for (const GlslOptions& options : {kPlain, kRich, kLoose}) {
          KernelVariant v = elementwise(*reduction, Access::strided, 3);
          v.form = form;
          v.reduce_rank = 2;
          v.lanes = 32;
          EXPECT_EQ(validate(*reduction, v, options), "") << name(type);
        }
      }
    }
  }
}

/// Every kind of row reduction in two walks, values one a row and one a point, outputs of both kinds.
Kernel row_kernel(DType type) {
  Kernel kernel;
  kernel.name = "rows";
  kernel.inputs = {type, type, type};
  kernel.index_count = 1;
  kernel.scalars = {type};
  kernel.code = {
      {ScalarOp::load, type, 0},        {ScalarOp::load_row, type, 1},    {ScalarOp::row_maximum, type, 0},
      {ScalarOp::add, type, 2, 1},      {ScalarOp::sub, type, 0, 3},      {ScalarOp::row_sum, type, 4},
      {ScalarOp::row_minimum, type, 4}, {ScalarOp::row_product, type, 0}, {ScalarOp::mul, type, 4, 5},
      {ScalarOp::add, type, 8, 6},      {ScalarOp::load, type, 2},        {ScalarOp::mul, type, 9, 10},
      {ScalarOp::index, type, 0},       {ScalarOp::add, type, 11, 12},    {ScalarOp::scalar, type, 0},
      {ScalarOp::add, type, 7, 14}};
  kernel.outputs = {{13, type}, {15, type}, {5, type}};
  kernel.finish();
  return kernel;
}

TEST(VulkanGlsl, RowsAreValid) {
  for (DType type : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8}) {
    const Kernel kernel = row_kernel(type);
    ASSERT_EQ(row_phases(kernel).passes, 3);
    for (Access access : {Access::linear, Access::strided}) {
      for (int row_rank : {0, 2}) {
        KernelVariant v = elementwise(kernel, access, row_rank + 2);
        v.access[3] = Access::strided;  // index operands are never linear
        v.reduce_rank = static_cast<std::uint8_t>(row_rank);
        v.form = RegionForm::rows_per_thread;
        EXPECT_EQ(validate(kernel, v, kRich), "") << name(type) << row_rank;
        v.form = RegionForm::rows_per_group;
        for (int lanes : {32, 64}) {
          v.lanes = static_cast<std::uint16_t>(lanes);
          v.kept = lanes == 64 ? 2 : 0;
          for (const GlslOptions& options : {kPlain, kRich, kLoose})
            EXPECT_EQ(validate(kernel, v, options), "") << name(type) << row_rank << ", lanes: " << lanes;
        }
      }
    }
  }
}

TEST(VulkanGlsl, WhatHasOneElementARowCountsOverRows) {
  const Kernel kernel = row_kernel(DType::f32);
  EXPECT_EQ(row_operands(kernel), (std::vector<bool>{false, true, false, false, false, true, true}));
  KernelVariant v = elementwise(kernel, Access::strided, 3);
  v.form = RegionForm::rows_per_group;
  v.reduce_rank = 1;
  const ArgumentLayout layout = argument_layout(kernel, v);
  EXPECT_EQ(layout.slots, 3 + 3 + 1);
  // Points, length, extents; then a bias and three strides an operand, two for those of the rows.
  EXPECT_EQ(layout.integers, 5 + 4 * 4 + 3 * 3);
  EXPECT_EQ(layout.bytes() % 8, 0);
}

/// Occurrences of `what`.
int count(const std::string& text, std::string_view what) {
  int n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(VulkanGlsl, AWalkComputesOnlyWhatItNeeds) {
  Kernel softmax;
  softmax.name = "softmax";
  softmax.inputs = {DType::f32};
  softmax.code = {{ScalarOp::load, DType::f32, 0},    {ScalarOp::row_maximum, DType::f32, 0},
                  {ScalarOp::sub, DType::f32, 0, 1},  {ScalarOp::exp, DType::f32, 2},
                  {ScalarOp::row_sum, DType::f32, 3}, {ScalarOp::div, DType::f32, 3, 4}};
  softmax.outputs = {{5, DType::f32}};
  softmax.finish();
  KernelVariant v = elementwise(softmax, Access::linear, 2);
  v.form = RegionForm::rows_per_group;
  v.reduce_rank = 1;
  v.lanes = 32;
  const std::string one_subgroup = to_glsl(softmax, v, kRich);
  EXPECT_EQ(count(one_subgroup, "= p0.v["), 3);
  EXPECT_EQ(count(one_subgroup, "= f_exp("), 2);
  EXPECT_EQ(count(one_subgroup, "p1.v["), 1);
  EXPECT_EQ(count(one_subgroup, "barrier()"), 0);
  EXPECT_EQ(count(one_subgroup, "shared"), 0);
  v.lanes = 128;  // one barrier a walk that reduces: the other one keeps the parts apart
  EXPECT_EQ(count(to_glsl(softmax, v, kRich), "barrier()"), 2);

  v.kept = 4;
  const std::string kept = to_glsl(softmax, v, kRich);
  EXPECT_EQ(count(kept, "= p0.v["), 4);
  EXPECT_EQ(count(kept, "= f_exp("), 4);
  EXPECT_EQ(count(kept, "p1.v["), 4);
}

TEST(VulkanGlsl, SeedsNeedNoInt64) {
  Kernel kernel;
  kernel.name = "normal";
  kernel.index_count = 1;
  kernel.scalars = {DType::i64};
  kernel.code = {{ScalarOp::scalar, DType::i64, 0},
                 {ScalarOp::index, DType::i32, 0},
                 {ScalarOp::philox_normal, DType::f32, 0, 1}};
  kernel.outputs = {{2, DType::f32}};
  kernel.finish();
  const KernelVariant variant = elementwise(kernel, Access::strided, 1);
  EXPECT_EQ(to_glsl(kernel, variant, kRich).find("int64"), std::string::npos);
  EXPECT_EQ(validate(kernel, variant, kRich), "");
}

/// y = relu(x0 * s + bias) and whether the point is on the diagonal, with the second input a parameter too.
Kernel two_output_epilogue() {
  Kernel kernel;
  kernel.name = "epilogue";
  kernel.inputs = {DType::f32, DType::i32, DType::f32, DType::u8};
  kernel.index_count = 1;
  kernel.scalars = {DType::f32};
  kernel.code = {{ScalarOp::load, DType::f32, 0},         {ScalarOp::scalar, DType::f32, 0},
                 {ScalarOp::mul, DType::f32, 0, 1},       {ScalarOp::load, DType::f32, 2},
                 {ScalarOp::add, DType::f32, 2, 3},       {ScalarOp::load, DType::i32, 1},
                 {ScalarOp::cast, DType::f32, 5},         {ScalarOp::maximum, DType::f32, 4, 6},
                 {ScalarOp::load, DType::u8, 3},          {ScalarOp::cast, DType::f32, 8},
                 {ScalarOp::add, DType::f32, 7, 9},       {ScalarOp::index, DType::i32, 0},
                 {ScalarOp::equal, DType::boolean, 11, 5}};
  kernel.outputs = {{10, DType::f32}, {12, DType::boolean}};
  kernel.finish();
  return kernel;
}

TEST(VulkanGlsl, EpiloguesAreValidBesideEachOther) {
  const Kernel stores = two_output_epilogue();
  Kernel returns = stores;
  returns.outputs.pop_back();
  returns.finish();
  GlslEpilogue::Shape shape{.rank = 3, .parameters = 2, .returns = true};
  shape.access = {Access::strided, Access::scalar, Access::strided};
  const GlslEpilogue score(returns, shape, "score");
  shape.returns = false;
  shape.access = {Access::scalar, Access::strided, Access::strided, Access::strided, Access::strided};
  const GlslEpilogue epilogue(stores, shape, "epilogue");
  // Addresses and the scalar; biases and strides.
  EXPECT_EQ(score.slots(), 3);
  EXPECT_EQ(score.integers(), 8);
  EXPECT_EQ(epilogue.slots(), 5);
  EXPECT_EQ(epilogue.integers(), 16);

  for (const GlslOptions& options : {kPlain, kRich}) {
    GlslNeeds needs = score.needs();
    needs.add(epilogue.needs());
    std::string text;
    append_glsl_preamble(needs, options, text);
    text += "layout(local_size_x = 8) in;\n";
    text += "layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments {\n";
    text += score.slot_members() + epilogue.slot_members() + "int points;\n";
    text += score.integer_members() + epilogue.integer_members() + "};\n";
    text += "layout(push_constant) uniform Push { Arguments a; };\n";
    append_glsl_functions(needs, text);
    text += score.function() + epilogue.function();
    text += "void main() {\n" + score.load("a.") + epilogue.load("a.");
    text += "  const int i = int(gl_GlobalInvocationID.x);\n";
    text += "  if (i < a.points) epilogue(score(1.0, i, i, 0, 1), i, 0, i, i);\n}\n";
    EXPECT_EQ(validate(text, "epilogues"), "");
  }
}

TEST(VulkanGlsl, SixteenBitTypesAreRefusedByName) {
  const auto kernel = one_op_kernel(ScalarOp::exp, DType::bf16, DType::bf16);
  try {
    to_glsl(*kernel, elementwise(*kernel, Access::linear, 1), kPlain);
    FAIL() << "no exception";
  } catch (const DTypeError& e) {
    EXPECT_NE(std::string(e.what()).find("bfloat16"), std::string::npos) << e.what();
  }
}

TEST(VulkanGlsl, ARefusedShaderNamesTheKernel) {
  try {
    vulkan::compile_glsl("#version 460\nvoid main() { nonsense; }\n", "add+exp");
    FAIL() << "no exception";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("add+exp"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace caldera::testing
