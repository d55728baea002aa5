#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY uvec2
#define ALIGN 8
#include "transpose.glsl"
