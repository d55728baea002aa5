#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY float
#define VECTOR vec4
#define ALIGN 4
#define LANES 64
#define ROWS 8
#define MULTIPLY_ADD(x, y, z) fma(x, y, z)
#include "matmul_tile.glsl"
