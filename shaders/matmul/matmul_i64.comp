#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define MEMORY int64_t
#define VECTOR i64vec4
#define ALIGN 8
#define LANES 64
#define ROWS 8
#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))
#include "matmul_tile.glsl"
