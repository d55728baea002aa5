// Arguments of gathers and scatters over (outer, indices, inner). The includer defines MEMORY, the element type; or
// WORDS, the bytes of an element that is a part of a word (../memory/words.glsl).
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x = 64) in;

#ifdef WORDS
#extension GL_EXT_buffer_reference_uvec2 : require
#include "../memory/words.glsl"
#define Memory uvec2
#define LOAD(memory, e) load_small(memory, e, WORDS)
#define STORE(memory, e, element) store_small(memory, e, WORDS, element)
#define ELEMENT(value) (value)
#else
layout(buffer_reference, std430, buffer_reference_align = ALIGN) buffer Memory { MEMORY v[]; };
#define LOAD(memory, e) memory.v[e]
#define STORE(memory, e, element) memory.v[e] = element
#define ELEMENT(value) MEMORY(value)
#endif
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Indices { int v[]; };

// One operand: element number = bias + sum(coordinate * stride). The address was lowered by bias elements, so that
// no element number is negative where a stride is.
struct View {
  int bias;
  int outer, indices, inner;
};

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments {
  Memory first;
  Indices index;
  Memory last;
  int points;
  int outer, indices, inner;
  int axis_extent, axis_stride;
  View first_view, index_view, last_view;
  int fill_low, fill_high;
  int parts, part_extent;  // of the axis: see scatter.glsl
  int apart, begin, count;  // of the indices
};

// The address of the arguments, and how many workgroups there are along x in all: a dispatch may be handed over in
// parts, and gl_NumWorkGroups counts those of one part. gl_WorkGroupID counts on from part to part.
layout(push_constant) uniform Push { Arguments a; uint all_groups; };
