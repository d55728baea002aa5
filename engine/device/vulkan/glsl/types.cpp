#include "engine/device/vulkan/glsl/types.h"

#include <fmt/core.h>

#include <array>

#include "engine/base/error.h"

namespace caldera {
namespace {

// In the order of DType. 8 and 16 bits have no registers of their own; u8 lives in a uint, as 0 to 255.
constexpr std::array<GlslTypeFacts, kDTypeCount> kFacts{{
    // bool
    {"Bytes", "(uint({}) != 0u)", "({} ? 1u : 0u)", "bool", "(({}.x & 0xffu) != 0u)", "false", "true",
     "false", "true"},
    // u8
    {"Bytes", "uint({})", "{}", "uint", "({}.x & 0xffu)", "0u", "1u", "0u", "255u"},
    // u32, i8, i16
    {"Ints", "int64_t(uint({}))", "int({})"},
    {"Bytes", "(int(uint({}) << 24) >> 24)", "(uint({}) & 0xffu)"},
    {"Halves", "(int(uint({}) << 16) >> 16)", "(uint({}) & 0xffffu)"},
    // i32
    {"Ints", "{}", "{}", "int", "int({}.x)", "0", "1", "(-2147483647 - 1)", "2147483647"},
    // i64
    {"Longs", "{}", "{}", "int64_t", "packInt2x32(ivec2({}))", "0l", "1l", "(-9223372036854775807l - 1l)",
     "9223372036854775807l"},
    // f16, bf16: by functions of the library
    {"Halves", "from_float16(uint({}))", "to_float16({})"},
    {"Halves", "from_bfloat16(uint({}))", "to_bfloat16({})"},
    // f32: the infinities are functions of the library
    {"Floats", "{}", "{}", "float", "uintBitsToFloat({}.x)", "0.0", "1.0", "-infinity()", "infinity()"},
    // f64
    {"Doubles", "{}", "{}", "double", "packDouble2x32({})", "0.0lf", "1.0lf",
     "packDouble2x32(uvec2(0u, 0xfff00000u))", "packDouble2x32(uvec2(0u, 0x7ff00000u))"},
}};

}  // namespace

const GlslTypeFacts& glsl_facts(DType type) { return kFacts[static_cast<std::size_t>(type)]; }

const GlslTypeFacts& glsl_register(DType type) {
  if (is_memory_type(type))
    throw DTypeError(
        fmt::format("kernel: not available for {} on Vulkan; use float32, or the CPU device", name(type)));
  return glsl_facts(type);
}

}  // namespace caldera
