#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY double
#define VECTOR dvec4
#define ALIGN 8
#define LANES 64
#define ROWS 1
#define MULTIPLY_ADD(x, y, z) fma(x, y, z)
#include "matmul_tile.glsl"
