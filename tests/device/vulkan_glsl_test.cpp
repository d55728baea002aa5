// The shaders that kernels lower to compile and are valid SPIR-V, whatever the device: no device is needed
// here.
#ifndef CALDERA_HAS_VULKAN
#define CALDERA_HAS_VULKAN 0
#endif
#if CALDERA_HAS_VULKAN
#include <gtest/gtest.h>

#include <memory>
#include <spirv-tools/libspirv.hpp>
#include <string>
#include <vector>

#include "engine/device/vulkan/shader_compiler.h"
#include "engine/kernel/glsl.h"
#include "engine/tensor/error.h"
#include "tests/support/plan_case.h"

namespace caldera::testing {
namespace {

std::string validate(const Kernel& kernel, const KernelVariant& variant, const GlslOptions& options) {
  const std::string text = to_glsl(kernel, variant, options);
  const std::vector<std::uint32_t> words = vulkan::compile_glsl(text, kernel.name);
  std::string message;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  tools.SetMessageConsumer(
      [&](spv_message_level_t, const char*, const spv_position_t&, const char* m) { message += m; });
  spvtools::ValidatorOptions validator;
  validator.SetScalarBlockLayout(true);
  if (tools.Validate(words.data(), words.size(), validator)) return {};
  return message + "\n" + text;
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
      const ScalarDomain domain = info(op).domain;
      if (domain == ScalarDomain::floating && !is_floating(type)) continue;
      if (domain == ScalarDomain::numeric && type == DType::boolean) continue;
      if (domain == ScalarDomain::boolean && type != DType::boolean) continue;
      const auto kernel = one_op_kernel(op, type, info(op).gives_boolean ? DType::boolean : type);
      EXPECT_EQ(validate(*kernel, elementwise(*kernel, Access::linear, 1), kRich), "")
          << info(op).name << " of " << name(type);
    }
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
    for (Combine combine : {Combine::sum, Combine::maximum, Combine::minimum, Combine::product}) {
      const auto reduction = reduce_kernel(combine, type);
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
#endif
