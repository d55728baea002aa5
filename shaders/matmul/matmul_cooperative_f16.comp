#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_16bit_storage : require
#define MEMORY float
#define VECTOR vec4
#define ALIGN 4
#define A_MEMORY float16_t
#define A_ALIGN 2
#define A_FOUR f16vec4
#define A_LOAD(memory, e) float(memory.v[e])
#define A_VALUES(x) vec4(x)
#define B_MEMORY float16_t
#define B_ALIGN 2
#define B_FOUR f16vec4
#define B_LOAD(memory, e) float(memory.v[e])
#define B_VALUES(x) vec4(x)
#include "matmul_cooperative.glsl"
