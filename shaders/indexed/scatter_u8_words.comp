#version 460
#extension GL_GOOGLE_include_directive : require
#define WORDS 1u
#define VALUE uint
#define IS_NAN(x) false
#include "scatter.glsl"
