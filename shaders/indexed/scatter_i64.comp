#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define MEMORY int64_t
#define ALIGN 8
#define VALUE int64_t
#define IS_NAN(x) false
#include "scatter.glsl"
