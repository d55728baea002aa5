#version 460
#extension GL_GOOGLE_include_directive : require
#define MEMORY double
#define ALIGN 8
#define VALUE double
#define IS_NAN(x) is_nan_d(x)
bool is_nan_d(double value) {
  const uvec2 words = unpackDouble2x32(value);
  const uint high = words.y & 0x7fffffffu;
  return high > 0x7ff00000u || (high == 0x7ff00000u && words.x != 0u);
}
#include "scatter.glsl"
