#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#define MEMORY float
#define VECTOR vec4
#define ALIGN 4
#define MULTIPLY_ADD(x, y, z) fma(x, y, z)
#include "matmul_vector_k.glsl"
