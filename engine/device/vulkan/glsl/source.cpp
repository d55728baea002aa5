#include "engine/device/vulkan/glsl/source.h"

#include "engine/device/vulkan/glsl/library/library.h"
#include "engine/device/vulkan/glsl/memory.h"

namespace caldera {

void append_glsl_preamble(const GlslNeeds& needs, const GlslOptions& options, std::string& out) {
  out +=
      "#version 460\n"
      "#extension GL_EXT_buffer_reference : require\n";
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

  append_glsl_memory(needs, options, out);
}

void append_glsl_functions(const GlslNeeds& needs, std::string& out) {
  std::set<std::string, std::less<>> done;
  for (const std::string& call : needs.calls) append_glsl_function(call, done, out);
}

}  // namespace caldera
