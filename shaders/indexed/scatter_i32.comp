#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY int
#define ALIGN 4
#define VALUE int
#define IS_NAN(x) false
#include "scatter.glsl"
