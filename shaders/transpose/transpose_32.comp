#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY uint
#define ALIGN 4
#include "transpose.glsl"
