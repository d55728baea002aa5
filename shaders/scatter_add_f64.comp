#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY double
#define ALIGN 8
#define ADD(x, y) (x + y)
#include "scatter_add.glsl"
