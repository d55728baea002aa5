// Collects what a shader's code needs ahead of it.
#pragma once

#include "engine/device/vulkan/glsl/expression.h"

namespace caldera {

/// Lists what code needs ahead of it: library functions, extensions, blocks of memory.
struct GlslNeeds {
  GlslCalls calls;
  bool int64 = false, bytes = false, halves = false, doubles = false;
  bool neighbours = false;                     // shaders/memory/neighbours.glsl
  bool subgroups = false, broadcasts = false;  // arithmetic and passing values around in subgroups
  bool coherent = false;                       // what one workgroup stores another one loads

  /// Registers of the type.
  void value(DType type) {
    int64 |= type == DType::i64;
    doubles |= type == DType::f64;
  }
  /// Elements of the type in memory. Throws DTypeError for types without a kernel.
  void memory(DType type) {
    glsl_type(compute_type(type));
    value(compute_type(type));
    bytes |= size_of(type) == 1;
    halves |= size_of(type) == 2;
  }
  void add(const GlslNeeds& more) {
    calls.insert(more.calls.begin(), more.calls.end());
    int64 |= more.int64;
    bytes |= more.bytes;
    halves |= more.halves;
    doubles |= more.doubles;
    neighbours |= more.neighbours;
    subgroups |= more.subgroups;
    broadcasts |= more.broadcasts;
    coherent |= more.coherent;
  }
};

}  // namespace caldera
