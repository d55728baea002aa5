#version 460
#extension GL_GOOGLE_include_directive : require
#define WORDS 2u
#define VALUE uint
#define IS_NAN(x) false
#include "scatter.glsl"
