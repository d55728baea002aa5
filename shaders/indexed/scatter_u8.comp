#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#define MEMORY uint8_t
#define ALIGN 1
#define VALUE uint
#define IS_NAN(x) false
#include "scatter.glsl"
