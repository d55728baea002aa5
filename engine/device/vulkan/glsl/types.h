// Says how GLSL spells each dtype: its elements in memory, its registers, and their constants.
#pragma once

#include <string_view>

#include "engine/tensor/dtype.h"

namespace caldera {

/// Holds what there is to know about a dtype in GLSL. "{}" stands for a format's one argument.
struct GlslTypeFacts {
  std::string_view block;   // the buffer reference that has its elements (see append_glsl_preamble)
  std::string_view loaded;  // format: a register of the compute type, of an element
  std::string_view
      stored;  // format: an element (8 and 16 bits: as a uint), of a register of the compute type
  // Known of registers, so empty for types of memory:
  std::string_view value;            // their type
  std::string_view argument;         // format: a kernel's argument, of its two words
  std::string_view zero, one;        // sum and product of no elements
  std::string_view lowest, highest;  // maximum and minimum of no elements
};

const GlslTypeFacts& glsl_facts(DType type);

/// Returns the facts of a compute type; throws DTypeError for types of memory.
const GlslTypeFacts& glsl_register(DType type);

}  // namespace caldera
