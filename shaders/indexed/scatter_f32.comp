#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY float
#define ALIGN 4
#define VALUE float
#define IS_NAN(x) ((floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u)
#include "scatter.glsl"
