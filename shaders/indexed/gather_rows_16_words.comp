#version 460
#extension GL_GOOGLE_include_directive : require
#define WORDS 2u
#define FILL uint(a.fill_low)
#define BYTES 2u
#include "gather_rows.glsl"
