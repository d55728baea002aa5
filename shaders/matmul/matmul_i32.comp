#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY int
#define VECTOR ivec4
#define ALIGN 4
#define LANES 64
#define ROWS 8
#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))
#include "matmul_tile.glsl"
