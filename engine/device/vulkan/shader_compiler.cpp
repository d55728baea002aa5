#include "engine/device/vulkan/shader_compiler.h"

#include <fmt/core.h>
#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

#include <mutex>
#include <spirv-tools/optimizer.hpp>

#include "engine/tensor/error.h"

namespace caldera::vulkan {

std::vector<std::uint32_t> compile_glsl(const std::string& text, const std::string& name) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  // Never finalised: another thread may compile while the process ends.
  static const bool ready = glslang::InitializeProcess();
  if (!ready) throw Error("glslang does not start");

  const char* source = text.c_str();
  glslang::TShader shader(EShLangCompute);
  shader.setStrings(&source, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  constexpr auto kMessages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  glslang::TProgram program;
  const bool parsed = shader.parse(GetDefaultResources(), 460, false, kMessages);
  if (parsed) program.addShader(&shader);
  if (!parsed || !program.link(kMessages))
    throw Error(fmt::format("kernel {}: the shader compiler refuses it: {}{}", name, shader.getInfoLog(),
                            parsed ? program.getInfoLog() : ""));
  glslang::SpvOptions options;
  options.disableOptimizer = true;  // SPIRV-Tools does it below
  std::vector<std::uint32_t> raw;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), raw, &options);

  spvtools::Optimizer optimizer(SPV_ENV_VULKAN_1_2);
  optimizer.RegisterPerformancePasses();
  std::vector<std::uint32_t> optimised;
  spvtools::OptimizerOptions run;
  run.set_run_validator(false);
  if (optimizer.Run(raw.data(), raw.size(), &optimised, run)) return optimised;
  return raw;
}

}  // namespace caldera::vulkan
