#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#define MEMORY uint8_t
#define VALUE uint
#define VECTOR uvec4
#define SMALL_MEMORY
#define ALIGN 1
#define LANES 64
#define ROWS 8
#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))
#include "matmul_tile.glsl"
