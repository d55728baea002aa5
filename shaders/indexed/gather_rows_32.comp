#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY uint
#define ALIGN 4
#define FILL uint(a.fill_low)
#define BYTES 4u
#include "gather_rows.glsl"
