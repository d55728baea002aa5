#include "engine/device/vulkan/products/product_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "engine/base/error.h"
#include "engine/device/vulkan/glsl/memory.h"
#include "engine/device/vulkan/glsl/types.h"
#include "engine/device/vulkan/pipelines/shader_parts.h"
#include "engine/tensor/dispatch.h"

namespace caldera::vulkan {
namespace {

/// Names and definitions as in shaders/matmul/matmul_*.comp.
struct TypeText {
  DType type;
  const char* name;
  const char* definitions;
};
constexpr TypeText kTypes[] = {
    {DType::f32, "f32",
     "#define MEMORY float\n#define VECTOR vec4\n#define ALIGN 4\n"
     "#define MULTIPLY_ADD(x, y, z) fma(x, y, z)\n"},
    {DType::f64, "f64",
     "#define MEMORY double\n#define VECTOR dvec4\n#define ALIGN 8\n"
     "#define MULTIPLY_ADD(x, y, z) fma(x, y, z)\n"},
    {DType::i32, "i32",
     "#define MEMORY int\n#define VECTOR ivec4\n#define ALIGN 4\n"
     "#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))\n"},
    {DType::i64, "i64",
     "#define MEMORY int64_t\n#define VECTOR i64vec4\n#define ALIGN 8\n"
     "#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))\n"},
    {DType::u8, "u8",
     "#define MEMORY uint8_t\n#define VALUE uint\n#define VECTOR uvec4\n#define SMALL_MEMORY\n#define ALIGN "
     "1\n"
     "#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))\n"},
};

/// Of u8 where its elements are parts of words.
constexpr const char* kBytesInWords =
    "#define MEMORY uint\n#define VECTOR uvec4\n#define SMALL_MEMORY\n#define ALIGN 1\n"
    "#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))\n"
    "#define A_MEMORY uint\n#define A_ALIGN 1\n#define A_SMALL\n"
    "#define A_LOAD(memory, e) load_small(uvec2(memory), e, 1u)\n"
    "#define B_MEMORY uint\n#define B_ALIGN 1\n#define B_SMALL\n"
    "#define B_LOAD(memory, e) load_small(uvec2(memory), e, 1u)\n"
    "#define C_STORE(memory, e, value) store_small(uvec2(memory), e, 1u, value)\n";

const TypeText& type_text(DType type) {
  for (const TypeText& text : kTypes) {
    if (text.type == type) return text;
  }
  throw DTypeError(fmt::format("no matrix product has {} for its sums", name(type)));
}

/// How A or B ("@" stands for the letter) is read where memory holds another type than the sums have, which
/// are f32 then. bf16 is the upper half of an f32.
struct MemoryText {
  DType type;
  const char* element;
  const char* definitions;
};
constexpr MemoryText kMemories[] = {
    {DType::f32, "float",
     "#define @_MEMORY float\n#define @_ALIGN 4\n#define @_FOUR vec4\n"
     "#define @_LOAD(memory, e) (memory.v[e])\n#define @_VALUES(x) (x)\n"},
    {DType::f16, "float16_t",
     "#define @_MEMORY float16_t\n#define @_ALIGN 2\n#define @_FOUR f16vec4\n"
     "#define @_LOAD(memory, e) float(memory.v[e])\n#define @_VALUES(x) vec4(x)\n"
     "#define @_RAW uvec4\n#define @_WIDE 8\n"
     "#define @_FOUR_OF(raw, f) vec4(unpackHalf2x16(raw[2 * (f)]), unpackHalf2x16(raw[2 * (f) + 1]))\n"},
    {DType::bf16, "uint16_t",
     "#define @_MEMORY uint16_t\n#define @_ALIGN 2\n#define @_FOUR u16vec4\n"
     "#define @_LOAD(memory, e) uintBitsToFloat(uint(memory.v[e]) << 16)\n"
     "#define @_VALUES(x) uintBitsToFloat(uvec4(x) << 16)\n"
     "#define @_RAW uvec4\n#define @_WIDE 8\n"
     "#define @_FOUR_OF(raw, f) uintBitsToFloat(uvec4(raw[2 * (f)] << 16, raw[2 * (f)] & 0xffff0000u, "
     "raw[2 * (f) + 1] << 16, raw[2 * (f) + 1] & 0xffff0000u))\n"},
};

const MemoryText& memory_text(DType type) {
  for (const MemoryText& text : kMemories) {
    if (text.type == type) return text;
  }
  throw DTypeError(fmt::format("no matrix product of f32 reads {}", name(type)));
}

std::string for_side(std::string_view text, char side) {
  std::string result(text);
  std::replace(result.begin(), result.end(), '@', side);
  return result;
}

/// The element as an f32.
std::string loaded_element(DType type, const std::string& block, const GlslOptions& options,
                           GlslCalls& calls) {
  if (options.in_words(type)) return glsl_load(type, "address", "e", options, calls);
  const std::string element = fmt::format("{}(address).v[e]", block);
  return type == DType::bf16 ? fmt::format("uintBitsToFloat(uint({}) << 16)", element)
                             : fmt::format("float({})", element);
}

/// One type in all segments: loads of that type. Otherwise a segment chooses among three.
std::string memory_definitions(char side, const std::vector<DType>& types, const GlslOptions& options,
                               GlslCalls& calls) {
  const bool uniform = std::ranges::all_of(types, [&](DType t) { return t == types[0]; });
  if (uniform && options.in_words(types[0])) {
    return for_side("#define @_MEMORY uint\n#define @_ALIGN 2\n#define @_SMALL\n#define @_LOAD(memory, e) ",
                    side) +
           glsl_load(types[0], "uvec2(memory)", "e", options, calls) + "\n";
  }
  if (uniform) return for_side(memory_text(types[0]).definitions, side);
  std::string text;
  std::string load = for_side("int @_kind;\nfloat @_load(uvec2 address, int e) {\n", side);
  for (std::size_t kind = 0; kind < std::size(kMemories); ++kind) {
    const MemoryText& memory = kMemories[kind];
    const std::string block = fmt::format("{}_{}", side, memory.element);
    if (!options.in_words(memory.type))
      text += fmt::format(
          "layout(buffer_reference, std430, buffer_reference_align = {}) readonly buffer {} {{ {} v[]; }};\n",
          size_of(memory.type), block, memory.element);
    load += for_side(fmt::format("  if (@_kind == {}) return {};\n", kind,
                                 loaded_element(memory.type, block, options, calls)),
                     side);
  }
  load += "  return 0.0;\n}\n";
  std::string kinds = "0";
  for (std::size_t s = 0; s < types.size(); ++s)
    kinds = fmt::format("(segment) == {} ? {} : {}", s, &memory_text(types[s]) - kMemories, kinds);
  return text + load +
         for_side(
             "#define @_MEMORY float\n#define @_ALIGN 2\n#define @_SMALL\n"
             "#define @_LOAD(memory, e) @_load(uvec2(memory), e)\n",
             side) +
         for_side("#define @_BEGIN(segment) @_kind = ", side) + kinds + ";\n";
}

/// What shaders/matmul/matmul.glsl takes for KERNEL_...: functions, arguments, and calls.
std::string epilogue_definitions(const ProductForm& form, std::span<const GlslEpilogue> epilogues,
                                 int batch_rank) {
  const BatchCoordinates batch = batch_coordinates(batch_rank);
  std::string text, slots, integers, begin, store;
  for (std::size_t i = 0; i < epilogues.size(); ++i) {
    const GlslEpilogue& epilogue = epilogues[i];
    text += epilogue.function();
    slots += one_line(epilogue.slot_members());
    integers += one_line(epilogue.integer_members());
    begin += one_line(epilogue.load("args."));
    if (epilogues.size() > 1) store += i == 0 ? "if (product == 0u) " : " else ";
    store += fmt::format("{}({}, {}row, column);", kEpilogueNames[i],
                         form.type == DType::u8 ? "(p) & 0xffu" : "p", batch.names);
  }
  text += fmt::format("#define KERNEL_SLOTS {}\n#define KERNEL_INTEGERS {}\n", slots, integers);
  text += fmt::format("#define KERNEL_BEGIN {}\n#define KERNEL_BATCH(batch) {}\n", begin, batch.declarations);
  return text + fmt::format("#define KERNEL_STORE(p, row, column) {}\n", store);
}

}  // namespace

bool ProductForm::plain_memory() const {
  return std::ranges::all_of(memory, [&](const std::vector<DType>& side) {
    return std::ranges::all_of(side, [&](DType t) { return t == type; });
  });
}

Hash128 ProductForm::hash() const {
  Hash128 hash;
  hash.mix(fmt::format("matmul {} {} {} {} {} {}{}", variant->name, static_cast<int>(type), scaled,
                       static_cast<int>(scale), scaled_segment, kernel.adds, kernel.broadcasts));
  hash.mix(kernel.definitions);
  for (const auto& side : memory) {
    for (DType t : side) hash.mix(static_cast<std::uint64_t>(t));
  }
  return hash;
}

const char* product_type_name(DType type) { return type_text(type).name; }

UnitScale unit_scale(DType type) {
  return dispatch<is_compute_number>(type, []<class T>() -> UnitScale {
    std::array<std::uint32_t, 2> words{};
    const T one{1};
    std::memcpy(words.data(), &one, sizeof(one));
    return {words[0], words[1]};
  });
}

std::string product_text(const ProductForm& form, std::span<const GlslEpilogue> epilogues, int batch_rank,
                         const GlslFinish* finish, const GlslOptions& options) {
  GlslNeeds needs;
  if (finish != nullptr) needs.add(finish->needs);
  for (const GlslEpilogue& epilogue : epilogues) needs.add(epilogue.needs());
  needs.memory(form.type);
  if (form.scaled) needs.value(form.scale);
  needs.subgroups |= form.kernel.adds;
  needs.broadcasts |= form.kernel.broadcasts;
  std::string scale;
  if (form.scaled) {
    const std::string argument = fmt::format(fmt::runtime(glsl_register(form.scale).argument), "(slot)");
    scale =
        fmt::format("#define SCALE(slot) {}\n", glsl_convert({argument, form.scale}, form.type, needs.calls));
  }

  std::string memory;
  if (!form.plain_memory()) {
    for (int side : {0, 1}) {
      for (DType type : form.memory[side]) needs.memory(type);
      memory += memory_definitions("AB"[side], form.memory[side], options, needs.calls);
    }
  }

  std::string text;
  append_glsl_preamble(needs, options, text);
  if (!form.plain_memory()) text += "#extension GL_EXT_buffer_reference_uvec2 : require\n";
  append_glsl_functions(needs, text);
  text += options.in_words(form.type) ? kBytesInWords : type_text(form.type).definitions;
  text += memory;
  text += scale;
  text += fmt::format("#define SEGMENTS {}\n", form.segments());
  if (form.scaled_segment >= 0) text += fmt::format("#define SCALED_SEGMENT {}\n", form.scaled_segment);
  text += form.kernel.definitions;
  if (!epilogues.empty()) text += epilogue_definitions(form, epilogues, batch_rank);
  const bool followed = epilogues.size() > 1;
  if (!followed && finish == nullptr) return text + form.variant->family->text();
  if (followed) text += "#define FOLLOWED\n";
  if (finish != nullptr)
    text += finish->functions + fmt::format("#define PUSH_MEMBERS {}\n", finish->kPushMembers);
  text += "#define main one_product\n" + form.variant->family->text() + "#undef main\nvoid main() {\n";
  // An invocation reads what it stored itself, as each stores the same elements of either product.
  text += followed ? "  [[dont_unroll]] for (product = 0u; product < 2u; ++product) {\n"
                     "    one_product();\n    memoryBarrierBuffer();\n  }\n"
                   : "  one_product();\n";
  if (finish != nullptr) text += finish->statements;
  return text + "}\n";
}

}  // namespace caldera::vulkan
