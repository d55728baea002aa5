#include "engine/device/vulkan/glsl/memory.h"

#include <fmt/core.h>

#include "engine/device/vulkan/glsl/types.h"
#include "engine/device/vulkan/pipelines/embedded_shaders.h"

namespace caldera {
namespace {

/// An element of a register's worth, as memory has it.
struct Block {
  const char* name;
  const char* element;
  int bytes;
  bool GlslNeeds::*needed;  // null: always there
};
constexpr Block kBlocks[] = {{"Floats", "float", 4, nullptr},
                             {"Ints", "int", 4, nullptr},
                             {"Bytes", "uint8_t", 1, &GlslNeeds::bytes},
                             {"Halves", "uint16_t", 2, &GlslNeeds::halves},
                             {"Longs", "int64_t", 8, &GlslNeeds::int64},
                             {"Doubles", "double", 8, &GlslNeeds::doubles}};

const Block& block_of(DType type) {
  const std::string_view name = glsl_facts(type).block;
  for (const Block& block : kBlocks) {
    if (name == block.name) return block;
  }
  return kBlocks[0];
}

std::string bits_of_element(DType type, std::string_view element) {
  const std::string_view block = block_of(type).element;
  if (block == "float") return fmt::format("floatBitsToUint({})", element);
  if (block == "int64_t") return fmt::format("uvec2(unpackInt2x32({}))", element);
  if (block == "double") return fmt::format("unpackDouble2x32({})", element);
  return fmt::format("uint({})", element);
}

std::string element_of_bits(DType type, std::string_view bits) {
  const std::string_view block = block_of(type).element;
  if (block == "float") return fmt::format("uintBitsToFloat({})", bits);
  if (block == "int64_t") return fmt::format("packInt2x32(ivec2({}))", bits);
  if (block == "double") return fmt::format("packDouble2x32({})", bits);
  return fmt::format("{}({})", block, bits);
}

}  // namespace

std::string_view glsl_memory(DType type, const GlslOptions& options) {
  return options.in_words(type) ? std::string_view("uvec2") : glsl_facts(type).block;
}

std::string glsl_memory_at(DType type, std::string_view address, const GlslOptions& options) {
  return options.in_words(type) ? std::string(address)
                                : fmt::format("{}({})", glsl_facts(type).block, address);
}

std::string glsl_load(DType type, std::string_view memory, std::string_view element,
                      const GlslOptions& options, GlslCalls& calls) {
  if (is_half(type)) calls.insert(fmt::format("from_{}", name(type)));
  const std::string bits = options.in_words(type)
                               ? fmt::format("load_small({}, {}, {}u)", memory, element, size_of(type))
                               : fmt::format("{}.v[{}]", memory, element);
  return fmt::format(fmt::runtime(glsl_facts(type).loaded), bits);
}

std::string glsl_store(DType type, std::string_view memory, std::string_view element,
                       const std::string& value, const GlslOptions& options, GlslCalls& calls) {
  if (is_half(type)) calls.insert(fmt::format("to_{}", name(type)));
  const std::string bits = fmt::format(fmt::runtime(glsl_facts(type).stored), value);
  if (options.in_words(type))
    return fmt::format("store_small({}, {}, {}u, {})", memory, element, size_of(type), bits);
  if (size_of(type) >= 4) return fmt::format("{}.v[{}] = {}", memory, element, bits);
  return fmt::format("{}.v[{}] = {}({})", memory, element, block_of(type).element, bits);
}

std::string glsl_address(DType type, std::string_view memory, const GlslOptions& options) {
  return options.in_words(type) ? std::string(memory) : fmt::format("uvec2({})", memory);
}

std::string glsl_load_bits(DType type, std::string_view memory, std::string_view element,
                           const GlslOptions& options) {
  if (options.in_words(type)) return fmt::format("load_small({}, {}, {}u)", memory, element, size_of(type));
  return bits_of_element(type, fmt::format("{}.v[{}]", memory, element));
}

std::string glsl_store_bits(DType type, std::string_view memory, std::string_view element,
                            const std::string& bits, const GlslOptions& options) {
  if (options.in_words(type))
    return fmt::format("store_small({}, {}, {}u, {})", memory, element, size_of(type), bits);
  return fmt::format("{}.v[{}] = {}", memory, element, element_of_bits(type, bits));
}

std::string glsl_from_bits(DType type, const std::string& bits, GlslCalls& calls) {
  if (is_half(type)) calls.insert(fmt::format("from_{}", name(type)));
  const std::string element = size_of(type) < 4 ? bits : element_of_bits(type, bits);
  return fmt::format(fmt::runtime(glsl_facts(type).loaded), element);
}

std::string glsl_to_bits(DType type, const std::string& value, GlslCalls& calls) {
  if (is_half(type)) calls.insert(fmt::format("to_{}", name(type)));
  const std::string element = fmt::format(fmt::runtime(glsl_facts(type).stored), value);
  return size_of(type) < 4 ? element : bits_of_element(type, element);
}

void append_glsl_memory(const GlslNeeds& needs, const GlslOptions& options, std::string& out) {
  const bool byte_words = needs.bytes && options.bytes_in_words;
  const bool half_words = needs.halves && options.halves_in_words;
  if (needs.bytes && !byte_words) out += "#extension GL_EXT_shader_8bit_storage : require\n";
  if (needs.halves && !half_words) out += "#extension GL_EXT_shader_16bit_storage : require\n";
  if (byte_words || half_words || needs.neighbours)
    out += "#extension GL_EXT_buffer_reference_uvec2 : require\n";
  if (needs.neighbours) out += "#extension GL_EXT_control_flow_attributes : require\n";
  const char* const coherent = needs.coherent ? "coherent " : "";
  out += fmt::format("#define COHERENT {}\n", coherent);
  for (const Block& block : kBlocks) {
    if (block.needed != nullptr && !(needs.*block.needed)) continue;
    if ((block.bytes == 1 && byte_words) || (block.bytes == 2 && half_words)) continue;
    out += fmt::format(
        "layout(buffer_reference, std430, buffer_reference_align = {}) {}buffer {} {{ {} v[]; }};\n",
        block.bytes, coherent, block.name, block.element);
  }
  if (byte_words || half_words) out += vulkan::whole_shader_text("words");
  if (needs.neighbours) out += vulkan::whole_shader_text("neighbours");
}

}  // namespace caldera
