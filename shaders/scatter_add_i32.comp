#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY int
#define ALIGN 4
#define ADD(x, y) (x + y)
#include "scatter_add.glsl"
