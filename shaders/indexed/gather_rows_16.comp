#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_16bit_storage : require
#define MEMORY uint16_t
#define ALIGN 2
#define FILL uint16_t(a.fill_low)
#define BYTES 2u
#include "gather_rows.glsl"
