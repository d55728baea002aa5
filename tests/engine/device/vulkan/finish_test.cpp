// What the last pass over a module changes, against assembly written by hand, and what a module asks for.
#include "engine/device/vulkan/spirv/finish.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <spirv-tools/libspirv.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/vulkan/pipelines/shader_compiler.h"
#include "engine/device/vulkan/spirv/reconverge.h"
#include "engine/device/vulkan/spirv/requirements.h"

namespace caldera::testing {
namespace {

using vulkan::Capabilities;

std::vector<std::uint32_t> assembled(const std::string& text) {
  std::vector<std::uint32_t> words;
  EXPECT_TRUE(spvtools::SpirvTools(SPV_ENV_VULKAN_1_2)
                  .Assemble(text, &words, SPV_TEXT_TO_BINARY_OPTION_PRESERVE_NUMERIC_IDS))
      << text;
  return words;
}

/// With ids as they are numbered, so that lines can be looked for.
std::string listing(const std::vector<std::uint32_t>& words) {
  std::string text;
  spvtools::SpirvTools(SPV_ENV_VULKAN_1_2).Disassemble(words, &text, SPV_BINARY_TO_TEXT_OPTION_NO_HEADER);
  return text;
}

bool is_valid(const std::vector<std::uint32_t>& words) {
  spvtools::ValidatorOptions options;
  options.SetScalarBlockLayout(true);
  return spvtools::SpirvTools(SPV_ENV_VULKAN_1_2).Validate(words.data(), words.size(), options);
}

std::string finished(const std::string& text) {
  const std::vector<std::uint32_t> words = vulkan::spirv::finish(assembled(text), "tested");
  EXPECT_TRUE(is_valid(words)) << listing(words);
  return listing(words);
}

int lines_with(const std::string& text, const std::string& part) {
  int times = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

/// `body` in a main() that may use: %args, the push constant, a pointer to %Block { address of %Bytes; int;
/// double }, and constants.
std::string module_of(const std::string& body, const std::string& capabilities = "",
                      const std::string& types = "") {
  return "OpCapability Shader\nOpCapability Float64\nOpCapability StorageBuffer8BitAccess\n"
         "OpCapability PhysicalStorageBufferAddresses\n" +
         capabilities +
         "OpMemoryModel PhysicalStorageBuffer64 GLSL450\n"
         "OpEntryPoint GLCompute %2 \"main\" %3\n"
         "OpExecutionMode %2 LocalSize 1 1 1\n"
         "OpDecorate %4 Block\nOpMemberDecorate %4 0 Offset 0\n"
         "OpDecorate %5 Block\nOpMemberDecorate %5 0 Offset 0\nOpMemberDecorate %5 1 Offset 8\n"
         "OpMemberDecorate %5 2 Offset 16\nOpMemberDecorate %5 3 Offset 24\n"
         "OpDecorate %6 Block\nOpMemberDecorate %6 0 Offset 0\n"
         "OpDecorate %7 ArrayStride 1\nOpDecorate %30 ArrayStride 4\n"
         "%10 = OpTypeVoid\n%11 = OpTypeFunction %10\n%12 = OpTypeInt 8 0\n%13 = OpTypeInt 32 1\n"
         "%14 = OpTypeFloat 64\n%7 = OpTypeRuntimeArray %12\n"
         "%15 = OpConstant %13 0\n%16 = OpConstant %13 1\n%17 = OpConstant %13 2\n%18 = OpConstant %13 3\n"
         "%29 = OpTypeInt 32 0\n%28 = OpConstant %29 3\n%30 = OpTypeArray %13 %28\n"
         "OpTypeForwardPointer %20 PhysicalStorageBuffer\n"
         "OpTypeForwardPointer %21 PhysicalStorageBuffer\n"
         "%6 = OpTypeStruct %7\n%5 = OpTypeStruct %20 %13 %14 %30\n%4 = OpTypeStruct %21\n"
         "%20 = OpTypePointer PhysicalStorageBuffer %6\n%21 = OpTypePointer PhysicalStorageBuffer %5\n"
         "%22 = OpTypePointer PushConstant %4\n%23 = OpTypePointer PushConstant %21\n"
         "%24 = OpTypePointer PhysicalStorageBuffer %20\n%25 = OpTypePointer PhysicalStorageBuffer %12\n"
         "%26 = OpTypePointer PhysicalStorageBuffer %13\n%27 = OpTypePointer PhysicalStorageBuffer %14\n" +
         types +
         "%3 = OpVariable %22 PushConstant\n"
         "%2 = OpFunction %10 None %11\n%8 = OpLabel\n" +
         body + "OpReturn\nOpFunctionEnd\n";
}

constexpr const char* kAddress =
    "%40 = OpAccessChain %23 %3 %15\n%41 = OpLoad %21 %40\n"
    "%42 = OpAccessChain %24 %41 %15\n%43 = OpLoad %20 %42 Aligned 1\n";

TEST(SpirvFinish, AddressesAreReadAtTheirAlignment) {
  const std::string text = finished(module_of(kAddress));
  EXPECT_EQ(lines_with(text, "Aligned 8"), 1) << text;
  EXPECT_EQ(lines_with(text, "Aligned 1"), 0) << text;
}

TEST(SpirvFinish, StoresAndLoadsOfNumbersToo) {
  const std::string text =
      finished(module_of(std::string(kAddress) + "%44 = OpAccessChain %27 %41 %17\n"
                                                 "%45 = OpLoad %14 %44 Aligned 4\n"
                                                 "OpStore %44 %45 Aligned 4\n"
                                                 "%46 = OpAccessChain %26 %41 %16\n"
                                                 "%47 = OpLoad %13 %46 Aligned 16\n"
                                                 "OpStore %46 %47 Volatile|Aligned 2\n"));
  EXPECT_EQ(lines_with(text, "Aligned 8"), 3) << text;           // the address, the double twice
  EXPECT_EQ(lines_with(text, "Aligned 16"), 1) << text;          // what is more stays
  EXPECT_EQ(lines_with(text, "Volatile|Aligned 4"), 1) << text;  // an int
}

TEST(SpirvFinish, ConstantsOfBytesAreConvertedWhereTheyAreStored) {
  const std::string store =
      std::string(kAddress) + "%44 = OpAccessChain %25 %43 %15 %15\nOpStore %44 %50 Aligned 1\n";
  const std::string types = "%50 = OpConstant %12 200\n";
  const std::string text = finished(module_of(store, "", types));
  EXPECT_EQ(lines_with(text, "OpUConvert"), 1) << text;
  EXPECT_EQ(lines_with(text, " 200"), 1) << text;
  EXPECT_EQ(lines_with(text, "%50 = "), 0) << text;
  // A module that may compute with bytes keeps them.
  const std::string kept = finished(module_of(store, "OpCapability Int8\n", types));
  EXPECT_EQ(lines_with(kept, "OpUConvert"), 0) << kept;
  EXPECT_EQ(lines_with(kept, "%50 = "), 1) << kept;
}

TEST(SpirvFinish, ConstantsWhoseTypeComesLaterAndThoseThatOthersUse) {
  const std::string store =
      std::string(kAddress) + "%44 = OpAccessChain %25 %43 %15 %15\nOpStore %44 %50 Aligned 1\n";
  // Ahead of both 32-bit types: the assembly begins with the small one.
  std::string text = module_of(store);
  const std::string small = "%12 = OpTypeInt 8 0\n";
  text.insert(text.find(small) + small.size(), "%50 = OpConstant %12 7\n");
  const std::string mended = finished(text);
  EXPECT_EQ(lines_with(mended, "OpUConvert"), 1) << mended;
  EXPECT_EQ(lines_with(mended, "OpTypeInt 32"), 2) << mended;
  // A name, and a composite: the constant is still there. (The input is not valid, so neither is the result.)
  const std::string types = "%50 = OpConstant %12 7\n%51 = OpTypeVector %12 2\n";
  const std::string composite = types + "%52 = OpConstantComposite %51 %50 %50\n";
  const auto kept = [](const std::string& module) {
    return lines_with(listing(vulkan::spirv::finish(assembled(module), "tested")), "%50 = ") == 1;
  };
  EXPECT_TRUE(kept(module_of(store, "", composite)));
  // An alignment or a member that is the number of the constant's id is no use of it.
  EXPECT_FALSE(kept(module_of(store + "%55 = OpAccessChain %26 %41 %16\n%56 = OpLoad %13 %55 Aligned 64\n",
                              "", "%50 = OpConstant %12 7\n")));
}

TEST(SpirvFinish, VariablesHaveNoStride) {
  const std::string types = "%51 = OpTypePointer Function %30\n%52 = OpTypePointer Function %13\n";
  const std::string body =
      "%53 = OpVariable %51 Function\n%54 = OpAccessChain %52 %53 %16\nOpStore %54 %15\n";
  const std::string text = finished(module_of(body, "", types));
  EXPECT_EQ(lines_with(text, "OpTypeArray"), 2) << text;
  EXPECT_EQ(lines_with(text, "OpTypePointer Function %30"), 0) << text;
  // So does one to whose like there is a pointer from within something larger.
  const std::string within = finished(module_of(
      "%56 = OpVariable %59 Function\n%57 = OpAccessChain %51 %56 %18\n%58 = OpAccessChain %52 %57 %16\n"
      "OpStore %58 %15\n",
      "", types + "%60 = OpTypeStruct %13 %13 %13 %30\n%59 = OpTypePointer Function %60\n"));
  EXPECT_EQ(lines_with(within, "OpTypeArray"), 1) << within;
  // One that is loaded as a whole keeps its type: another would not be that of what is loaded.
  const std::string whole = finished(module_of(body + "%55 = OpLoad %30 %53\n", "", types));
  EXPECT_EQ(lines_with(whole, "OpTypeArray"), 1) << whole;
}

/// A product of matrices whose types are `a` and `b`, with elements of so many bits.
std::vector<std::uint32_t> product_of(const std::string& a, const std::string& b,
                                      const std::string& bits = "16") {
  const std::string text =
      "#version 460\n#extension GL_NV_cooperative_matrix : require\n"
      "#extension GL_KHR_memory_scope_semantics : require\n"
      "#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n"
      "layout(local_size_x = 32) in;\nlayout(constant_id = 0) const int m = 16;\n"
      "layout(constant_id = 1) const int n = 16;\nlayout(constant_id = 2) const int k = 16;\n"
      "shared uvec4 tile[32];\nshared float sums[256];\nvoid main() {\n"
      "  fcoopmatNV<" +
      bits + ", gl_ScopeSubgroup, " + a + "> x;\n  fcoopmatNV<" + bits + ", gl_ScopeSubgroup, " + b +
      "> y;\n  coopMatLoadNV(x, tile, 0u, 2u, true);\n  coopMatLoadNV(y, tile, 0u, 2u, false);\n"
      "  fcoopmatNV<32, gl_ScopeSubgroup, m, n> z = fcoopmatNV<32, gl_ScopeSubgroup, m, n>(0.0);\n"
      "  z = coopMatMulAddNV(x, y, z);\n  coopMatStoreNV(z, sums, 0u, 16u, false);\n}\n";
  return vulkan::compile_glsl(text, "tested");
}

TEST(SpirvFinish, MatricesBecomeKhrs) {
  using namespace vulkan::spirv;
  std::vector<std::uint32_t> uses;
  bool asks_for_nv = false;
  std::unordered_map<std::uint32_t, std::uint32_t> constants;
  const auto product = finish(product_of("m, k", "k, n"), "tested");
  for_each_instruction(product, "tested", [&](const vulkan::spirv::Instruction& i) {
    if (i.op == OpConstant) constants[i.words[2]] = i.words[3];
    if (i.op == OpTypeCooperativeMatrixKHR) uses.push_back(constants.at(i.words[6]));
    // Pointer, layout and stride of a load; the layout of the first one is by columns.
    if (i.op == OpCooperativeMatrixLoadKHR) {
      EXPECT_EQ(constants.at(i.words[5]), 2U);
      uses.push_back(10 + constants.at(i.words[4]));
    }
    asks_for_nv |= i.op == OpCapability && i.words[1] == CapabilityCooperativeMatrixNV;
  });
  std::ranges::sort(uses);
  EXPECT_EQ(uses, (std::vector<std::uint32_t>{0, 1, 2, 10, 11}));  // A, B and the sums; by rows, by columns
  EXPECT_FALSE(asks_for_nv);
}

/// SPV_KHR_bfloat16: OpTypeFloat 16 0 for A and B, with its capabilities; the sums stay f32.
TEST(SpirvFinish, MatricesOfThirtyTwoBitsBecomeBfloat16s) {
  using namespace vulkan::spirv;
  std::vector<std::uint32_t> capabilities, bfloat16;
  std::vector<bool> components;  // of each matrix type: whether it is bf16
  const auto words = finish(product_of("m, k", "k, n", "32"), "tested");
  for_each_instruction(words, "tested", [&](const vulkan::spirv::Instruction& i) {
    if (i.op == OpCapability) capabilities.push_back(i.words[1]);
    if (i.op == OpTypeFloat && i.words.size() == 4 && i.words[2] == 16 && i.words[3] == 0)
      bfloat16.push_back(i.words[1]);
    if (i.op == OpTypeCooperativeMatrixKHR)
      components.push_back(std::ranges::find(bfloat16, i.words[2]) != bfloat16.end());
  });
  EXPECT_EQ(bfloat16.size(), 1U);
  EXPECT_EQ(std::ranges::count(components, true), 2);
  EXPECT_EQ(components.size(), 3U);
  for (const std::uint32_t number : {5116U, 5118U})
    EXPECT_EQ(std::ranges::count(capabilities, number), 1) << number;
  EXPECT_EQ(missing_features(words, Capabilities{.memory_model = true, .cooperative_matrix = true}, "tested"),
            std::vector<std::string>(2, "bfloat16-matrix"));
}

TEST(SpirvFinish, OneTypeOfTwoUsesIsAnError) {
  try {
    vulkan::spirv::finish(product_of("16, 16", "16, 16"), "tested");
    ADD_FAILURE() << "A and B of one type were taken";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("kernel tested"), std::string::npos) << error.what();
  }
}

TEST(SpirvFinish, DamagedModulesAreErrors) {
  const std::vector<std::uint32_t> good = assembled(module_of(kAddress));
  const auto refused = [](const std::vector<std::uint32_t>& words) {
    EXPECT_THROW(vulkan::spirv::finish(words, "tested"), DeviceError);
  };
  refused({});
  refused({1, 2, 3, 4, 5, 6});
  std::vector<bool> begins(good.size());
  vulkan::spirv::for_each_instruction(good, "tested", [&](const vulkan::spirv::Instruction& i) {
    begins[static_cast<std::size_t>(i.words.data() - good.data())] = true;
  });
  for (std::size_t w = vulkan::spirv::kHeaderWords; w < good.size(); ++w) {
    std::vector<std::uint32_t> words = good;
    words[w] = 0xffff0000U | (words[w] & 0xffffU);  // longer than the rest where an instruction begins
    if (begins[w]) {
      refused(words);
    } else {
      try {  // an operand: anything but a crash
        vulkan::spirv::finish(words, "tested");
      } catch (const DeviceError&) {
      }
    }
    words.resize(w);
    if (!begins[w]) refused(words);  // the last instruction is cut
  }
}

TEST(SpirvReconverge, ModulesThatWorkWithSubgroupsPromiseTo) {
  const auto words = [](const std::string& capabilities) {
    return vulkan::spirv::reconverging(assembled(module_of("", capabilities)), "tested");
  };
  const std::vector<std::uint32_t> plain = assembled(module_of(""));
  EXPECT_EQ(words(""), plain) << "without subgroups a module stays as it is";
  const std::vector<std::uint32_t> made =
      words("OpCapability GroupNonUniform\nOpCapability GroupNonUniformArithmetic\n");
  EXPECT_TRUE(is_valid(made)) << listing(made);
  const std::string text = listing(made);
  EXPECT_EQ(lines_with(text, "OpExecutionMode %2 SubgroupUniformControlFlowKHR"), 1) << text;
  EXPECT_EQ(lines_with(text, "OpExtension \"SPV_KHR_subgroup_uniform_control_flow\""), 1) << text;
}

TEST(SpirvRequirements, WhatTheDeviceLacksIsNamed) {
  const std::vector<std::uint32_t> words =
      assembled(module_of("", "OpCapability Int8\nOpCapability Int64\nOpCapability Tessellation\n"));
  using Names = std::vector<std::string>;
  EXPECT_EQ(vulkan::spirv::missing_features(words, Capabilities{}, "tested"),
            (Names{"float64", "8-bit-storage", "int8", "int64", "SPIR-V capability 3"}));
  Capabilities can;
  can.float64 = can.storage_8bit = can.int8 = can.int64 = true;
  EXPECT_EQ(vulkan::spirv::missing_features(words, can, "tested"), (Names{"SPIR-V capability 3"}));
}

/// Four turns of a loop that the optimiser unrolls: the sums of each are marked, the one with a product is
/// not.
TEST(Finish, SumsKeepTheirOrder) {
  const std::string text = R"(#version 460
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer Memory { float v[]; };
void main() {
  [[unroll]] for (int i = 0; i < 4; ++i) {
    const float a = v[i], b = v[i + 4];
    v[i + 8] = (a + b) - a;
    v[i + 12] = a * b + a;
  }
})";
  const std::string found = listing(vulkan::spirv::finish(vulkan::compile_glsl(text, "sums"), "sums"));
  ASSERT_EQ(lines_with(found, "OpLoopMerge"), 0) << found;
  // Whether multiplication and addition are one already is the optimiser's affair.
  EXPECT_EQ(lines_with(found, " Fma ") + lines_with(found, "OpFAdd"), 8) << found;
  EXPECT_EQ(lines_with(found, "OpFSub"), 4) << found;
  EXPECT_EQ(lines_with(found, "NoContraction"), 8) << found;
}

}  // namespace
}  // namespace caldera::testing
