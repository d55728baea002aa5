#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY uvec2
#define ALIGN 8
#define FILL uvec2(a.fill_low, a.fill_high)
#define BYTES 8u
#include "gather_rows.glsl"
