#include "engine/device/vulkan/glsl/source.h"

#include "engine/device/vulkan/glsl/library.h"
#include "engine/device/vulkan/glsl/types.h"

namespace caldera {

std::string_view glsl_memory(DType type) { return glsl_facts(type).block; }

std::string glsl_loaded(DType type, const std::string& element, GlslCalls& calls) {
  if (is_half(type)) calls.insert(fmt::format("from_{}", name(type)));
  return fmt::format(fmt::runtime(glsl_facts(type).loaded), element);
}

std::string glsl_stored(DType type, const std::string& value, GlslCalls& calls) {
  if (is_half(type)) calls.insert(fmt::format("to_{}", name(type)));
  return fmt::format(fmt::runtime(glsl_facts(type).stored), value);
}

void append_glsl_preamble(const GlslNeeds& needs, const GlslOptions& options, std::string& out) {
  out +=
      "#version 460\n"
      "#extension GL_EXT_buffer_reference : require\n";
  if (needs.bytes) out += "#extension GL_EXT_shader_8bit_storage : require\n";
  if (needs.halves) out += "#extension GL_EXT_shader_16bit_storage : require\n";
  if (needs.int64) out += "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n";
  if (needs.subgroups)
    out +=
        "#extension GL_KHR_shader_subgroup_basic : require\n"
        "#extension GL_KHR_shader_subgroup_arithmetic : require\n";
  if (needs.broadcasts)
    out +=
        "#extension GL_KHR_shader_subgroup_basic : require\n"
        "#extension GL_KHR_shader_subgroup_ballot : require\n";
  if (options.preserve_nan_inf) {
    // SignedZeroInfNanPreserve: neither the optimiser nor the driver may fold x - x, 0 * x and the like.
    out +=
        "#extension GL_EXT_spirv_intrinsics : require\n"
        "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], capabilities = [4466], 4461, 32);\n";
    if (needs.doubles)
      out +=
          "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], capabilities = [4466], 4461, "
          "64);\n";
  }

  constexpr std::pair<const char*, const char*> kMemory[] = {{"Floats", "float"},  {"Ints", "int"},
                                                             {"Bytes", "uint8_t"}, {"Halves", "uint16_t"},
                                                             {"Longs", "int64_t"}, {"Doubles", "double"}};
  for (const auto& [block, type] : kMemory) {
    const std::string_view name = block;
    if ((name == "Bytes" && !needs.bytes) || (name == "Halves" && !needs.halves) ||
        (name == "Longs" && !needs.int64) || (name == "Doubles" && !needs.doubles))
      continue;
    const int size = name == "Bytes"                        ? 1
                     : name == "Halves"                     ? 2
                     : name == "Longs" || name == "Doubles" ? 8
                                                            : 4;
    out += fmt::format(
        "layout(buffer_reference, std430, buffer_reference_align = {}) buffer {} {{ {} v[]; }};\n", size,
        block, type);
  }
}

void append_glsl_functions(const GlslNeeds& needs, std::string& out) {
  std::set<std::string, std::less<>> done;
  for (const std::string& call : needs.calls) append_glsl_function(call, done, out);
}

}  // namespace caldera
