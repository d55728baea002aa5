// Writes how a shader reads and writes elements of memory, type by type.
//
// Memory of a type is a buffer reference (`Floats`, `Ints`, `Bytes`, `Halves`, `Longs`, `Doubles`), or the
// bare address (`uvec2`) of 8- and 16-bit elements where the device has no storage of such: those are parts
// of 32-bit words then (shaders/memory/words.glsl).
#pragma once

#include <string>
#include <string_view>

#include "engine/device/vulkan/glsl/needs.h"
#include "engine/device/vulkan/glsl/variant.h"

namespace caldera {

/// The type of what refers to memory with elements of `type`.
std::string_view glsl_memory(DType type, const GlslOptions& options);
/// That, made of an address that is a uvec2.
std::string glsl_memory_at(DType type, std::string_view address, const GlslOptions& options);

/// A register's worth of element number `element` (an int), of compute_type(type).
std::string glsl_load(DType type, std::string_view memory, std::string_view element,
                      const GlslOptions& options, GlslCalls& calls);
/// The expression that stores `value`, of compute_type(type).
std::string glsl_store(DType type, std::string_view memory, std::string_view element,
                       const std::string& value, const GlslOptions& options, GlslCalls& calls);

/// The address as a uvec2 of what `memory` refers to.
std::string glsl_address(DType type, std::string_view memory, const GlslOptions& options);

/// The bits of element number `element` in memory: a uint, of 64-bit types a uvec2; and the statement that
/// stores such bits.
std::string glsl_load_bits(DType type, std::string_view memory, std::string_view element,
                           const GlslOptions& options);
std::string glsl_store_bits(DType type, std::string_view memory, std::string_view element,
                            const std::string& bits, const GlslOptions& options);
/// The register of compute_type(type) that such bits stand for, and the bits that store a register.
std::string glsl_from_bits(DType type, const std::string& bits, GlslCalls& calls);
std::string glsl_to_bits(DType type, const std::string& value, GlslCalls& calls);

/// Extensions, the buffer references that are needed and the functions for parts of words.
void append_glsl_memory(const GlslNeeds& needs, const GlslOptions& options, std::string& out);

}  // namespace caldera
