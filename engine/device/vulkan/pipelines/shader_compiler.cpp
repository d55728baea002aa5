#include "engine/device/vulkan/pipelines/shader_compiler.h"

#include <fmt/core.h>
#include <glslang/Include/glslang_c_interface.h>
#include <glslang/Public/resource_limits_c.h>

#include <memory>
#include <spirv-tools/optimizer.hpp>

#include "engine/base/error.h"

namespace caldera::vulkan {
namespace {

struct Delete {
  void operator()(glslang_shader_t* shader) const { glslang_shader_delete(shader); }
  void operator()(glslang_program_t* program) const { glslang_program_delete(program); }
};

// The C interface: the classes are built without run-time type information, which -fsanitize=vptr asks for.
std::vector<std::uint32_t> to_spirv(const std::string& text, const std::string& name) {
  glslang_input_t input{};
  input.language = GLSLANG_SOURCE_GLSL;
  input.stage = GLSLANG_STAGE_COMPUTE;
  input.client = GLSLANG_CLIENT_VULKAN;
  input.client_version = GLSLANG_TARGET_VULKAN_1_2;
  input.target_language = GLSLANG_TARGET_SPV;
  input.target_language_version = GLSLANG_TARGET_SPV_1_5;
  input.code = text.c_str();
  input.default_version = 460;
  input.default_profile = GLSLANG_CORE_PROFILE;
  input.messages = static_cast<glslang_messages_t>(GLSLANG_MSG_SPV_RULES_BIT | GLSLANG_MSG_VULKAN_RULES_BIT);
  input.resource = reinterpret_cast<const glslang_resource_t*>(glslang_default_resource());

  const std::unique_ptr<glslang_shader_t, Delete> shader(glslang_shader_create(&input));
  const auto refuse = [&](const char* log) {
    throw Error(fmt::format("kernel {}: the shader compiler refuses it: {}", name, log));
  };
  if (!glslang_shader_preprocess(shader.get(), &input) || !glslang_shader_parse(shader.get(), &input))
    refuse(glslang_shader_get_info_log(shader.get()));
  const std::unique_ptr<glslang_program_t, Delete> program(glslang_program_create());
  glslang_program_add_shader(program.get(), shader.get());
  if (!glslang_program_link(program.get(), input.messages))
    refuse(glslang_program_get_info_log(program.get()));
  glslang_program_SPIRV_generate(program.get(), GLSLANG_STAGE_COMPUTE);
  std::vector<std::uint32_t> words(glslang_program_SPIRV_get_size(program.get()));
  glslang_program_SPIRV_get(program.get(), words.data());
  return words;
}

}  // namespace

std::vector<std::uint32_t> compile_glsl(const std::string& text, const std::string& name) {
  // Never finalised: another thread may compile while the process ends. From then on a thread has its own of
  // everything: memory pool, symbols, shader and program.
  static const bool kReady = glslang_initialize_process() != 0;
  if (!kReady) throw Error("glslang does not start");

  std::vector<std::uint32_t> raw = to_spirv(text, name);
  // SPIRV-Tools 2023.1 crashes in its passes on cooperative matrices; such a text has no use for them either.
  if (text.find("GL_NV_cooperative_matrix") != std::string::npos) return raw;
  spvtools::Optimizer optimizer(SPV_ENV_VULKAN_1_2);
  optimizer.RegisterPerformancePasses();
  std::vector<std::uint32_t> optimised;
  spvtools::OptimizerOptions run;
  run.set_run_validator(false);
  if (optimizer.Run(raw.data(), raw.size(), &optimised, run)) return optimised;
  return raw;
}

}  // namespace caldera::vulkan
