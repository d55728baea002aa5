#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_16bit_storage : require
// Updates of 16 bits replace, and are only moved.
#define MEMORY uint16_t
#define ALIGN 2
#define VALUE uint
#define IS_NAN(x) false
#include "scatter.glsl"
