#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#define MEMORY uint8_t
#define ALIGN 1
#define FILL uint8_t(a.fill_low)
#define BYTES 1u
#include "gather_rows.glsl"
