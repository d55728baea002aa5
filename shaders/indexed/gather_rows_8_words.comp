#version 460
#extension GL_GOOGLE_include_directive : require
#define WORDS 1u
#define FILL uint(a.fill_low)
#define BYTES 1u
#include "gather_rows.glsl"
