// P[b, m, n] = sum over segments of scale * sum over k of A[b, m, k] B[b, k, n], with strides for everything, and an
// epilogue on every element of P.
//
// The includer defines MEMORY (an element of A and B), VECTOR (four of it in registers), ALIGN (its bytes), LANES (a
// workgroup's invocations) and MULTIPLY_ADD, and SMALL_MEMORY where MEMORY has no vectors. Where there is more than one
// segment, or a kernel as the epilogue, the text is put together at run time (engine/device/vulkan/contract_step.cpp),
// with these as well:
//   SEGMENTS, SCALE(slot)              how many, and the factor that eight bytes of the table hold; none: all are 1
//   A_LAYOUT, B_LAYOUT                 of all segments: see matmul_tile.glsl
//   KERNEL_SLOTS, KERNEL_INTEGERS      members of Arguments that belong to the epilogue
//   KERNEL_BEGIN, KERNEL_BATCH(batch)  what it needs once, and in each batch
//   KERNEL_STORE(p, row, column)       evaluates it and stores its outputs
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require

layout(local_size_x = LANES) in;

layout(buffer_reference, std430, buffer_reference_align = ALIGN) buffer Memory { MEMORY v[]; };

#ifdef SMALL_MEMORY
VECTOR four_at(Memory memory, int e) {
  return VECTOR(memory.v[e], memory.v[e + 1], memory.v[e + 2], memory.v[e + 3]);
}
#define VECTOR_AT(memory, element) four_at(memory, element)
#else
// Four neighbouring elements, at the alignment of one.
layout(buffer_reference, scalar, buffer_reference_align = ALIGN) buffer Four { VECTOR v; };

VECTOR four_at(uvec2 address, int element) {
  uint carry;
  const uint low = uaddCarry(address.x, uint(element) * ALIGN, carry);
  return Four(uvec2(low, address.y + carry)).v;
}
#define VECTOR_AT(memory, element) four_at(uvec2(memory), element)
#endif

// Element number = bias + row * rows + column * columns + sum(batch coordinate * batch[d]). The address was lowered
// by bias elements, so that no element number is negative where a stride is.
struct View {
  int bias;
  int rows, columns;
  int batch[5];
};

#ifndef SEGMENTS
#define SEGMENTS 1
#endif

#ifdef KERNEL_STORE
#define VIEWS (2 * SEGMENTS)
#define ROWS_IN_TURN
#else
#define VIEWS (2 * SEGMENTS + 1)
#define KERNEL_SLOTS Memory c;
#define KERNEL_INTEGERS
#define KERNEL_BEGIN                                \
  Memory c = args.c;                                \
  const int c_row = args.views[2 * SEGMENTS].rows;  \
  const int c_column = args.views[2 * SEGMENTS].columns;
#define KERNEL_BATCH(batch) const int c_at = element_at(2 * SEGMENTS, batch);
#define KERNEL_STORE(p, row, column) c.v[c_at + (row) * c_row + (column) * c_column] = MEMORY(p);
#endif

struct Segment {
  Memory a, b;
  uvec2 scale;
};

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments {
  Segment segments[SEGMENTS];
  KERNEL_SLOTS
  int batches, m, n;
  int batch_rank;
  int batch_extents[5];
  int k[SEGMENTS];
  View views[VIEWS];  // A and B of each segment, then C
  KERNEL_INTEGERS
};

layout(push_constant) uniform Push { Arguments args; };

// Element number of row 0 and column 0 of a batch in a view.
int element_at(int view, uint batch) {
  int at = args.views[view].bias;
  for (int d = args.batch_rank - 1; d >= 0; --d) {
    const uint extent = uint(args.batch_extents[d]);
    at += int(batch % extent) * args.views[view].batch[d];
    batch /= extent;
  }
  return at;
}
