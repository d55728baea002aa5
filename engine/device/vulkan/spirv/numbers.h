// Numbers of the SPIR-V specification (registry.khronos.org/SPIR-V/specs/unified1/SPIRV.html, section 3) that
// Caldera reads or writes, those of extensions included that the headers of older distributions lack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caldera::vulkan::spirv {

inline constexpr std::uint32_t kMagic = 0x07230203;
/// Words ahead of the first instruction: magic, version, generator, bound of the ids, schema.
inline constexpr std::size_t kHeaderWords = 5;
inline constexpr std::size_t kBoundWord = 3;

enum Op : std::uint16_t {
  OpUndef = 1,
  OpName = 5,
  OpExtension = 10,
  OpEntryPoint = 15,
  OpExecutionMode = 16,
  OpCapability = 17,
  OpTypeBool = 20,
  OpTypeInt = 21,
  OpTypeFloat = 22,
  OpTypeVector = 23,
  OpTypeMatrix = 24,
  OpTypeArray = 28,
  OpTypeRuntimeArray = 29,
  OpTypeStruct = 30,
  OpTypePointer = 32,
  OpTypeForwardPointer = 39,
  OpConstantTrue = 41,
  OpConstantFalse = 42,
  OpConstant = 43,
  OpConstantComposite = 44,
  OpSpecConstant = 50,
  OpSpecConstantComposite = 51,
  OpSpecConstantOp = 52,
  OpFunction = 54,
  OpVariable = 59,
  OpLoad = 61,
  OpStore = 62,
  OpCopyMemory = 63,
  OpCopyMemorySized = 64,
  OpDecorate = 71,
  OpCompositeExtract = 81,
  OpUConvert = 113,
  OpSConvert = 114,
  OpFAdd = 129,
  OpFSub = 131,
  OpFMul = 133,
  OpExecutionModeId = 331,
  OpTypeCooperativeMatrixKHR = 4456,
  OpCooperativeMatrixLoadKHR = 4457,
  OpCooperativeMatrixStoreKHR = 4458,
  OpCooperativeMatrixMulAddKHR = 4459,
  OpCooperativeMatrixLengthKHR = 4460,
  OpTypeCooperativeMatrixNV = 5358,
  OpCooperativeMatrixLoadNV = 5359,
  OpCooperativeMatrixStoreNV = 5360,
  OpCooperativeMatrixMulAddNV = 5361,
  OpCooperativeMatrixLengthNV = 5362,
};

inline constexpr std::uint32_t kStorageClassWorkgroup = 4;
inline constexpr std::uint32_t kStorageClassPrivate = 6;
inline constexpr std::uint32_t kStorageClassFunction = 7;
inline constexpr std::uint32_t kStorageClassPhysicalStorageBuffer = 5349;
inline constexpr std::uint32_t kDecorationSpecId = 1;
inline constexpr std::uint32_t kDecorationArrayStride = 6;
inline constexpr std::uint32_t kDecorationBuiltIn = 11;
inline constexpr std::uint32_t kDecorationNoContraction = 42;
inline constexpr std::uint32_t kBuiltInWorkgroupSize = 25;
inline constexpr std::uint32_t kExecutionModeLocalSize = 17;
inline constexpr std::uint32_t kExecutionModeLocalSizeId = 38;
inline constexpr std::uint32_t kMemoryAccessAligned = 0x2;
inline constexpr std::uint32_t kEncodingBFloat16KHR = 0;  // of OpTypeFloat

inline constexpr std::uint32_t kSubgroupUniformControlFlow = 4421;  // an execution mode

enum Capability : std::uint32_t {
  CapabilityMatrix = 0,
  CapabilityShader = 1,
  CapabilityFloat16 = 9,
  CapabilityFloat64 = 10,
  CapabilityInt64 = 11,
  CapabilityInt16 = 22,
  CapabilityInt8 = 39,
  CapabilityGroupNonUniform = 61,
  CapabilityGroupNonUniformArithmetic = 63,
  CapabilityGroupNonUniformBallot = 64,
  CapabilityStorageBuffer16BitAccess = 4433,
  CapabilityStorageBuffer8BitAccess = 4448,
  CapabilitySignedZeroInfNanPreserve = 4466,
  CapabilityVulkanMemoryModel = 5345,
  CapabilityVulkanMemoryModelDeviceScope = 5346,
  CapabilityPhysicalStorageBufferAddresses = 5347,
  CapabilityBFloat16TypeKHR = 5116,
  CapabilityBFloat16CooperativeMatrixKHR = 5118,
  CapabilityCooperativeMatrixNV = 5357,
  CapabilityCooperativeMatrixKHR = 6022,
};

}  // namespace caldera::vulkan::spirv
