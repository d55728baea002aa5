// C[b, m, n] = sum over k of A[b, m, k] B[b, k, n], with strides for everything. The includer defines MEMORY, VECTOR
// (four of it in registers), ALIGN (its bytes), LANES (a workgroup's invocations) MULTIPLY_ADD, and
// SMALL_MEMORY where MEMORY has no vectors.
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

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments {
  Memory a, b, c;
  int batches, m, n, k;
  int batch_rank;
  int batch_extents[5];
  View a_view, b_view, c_view;
};

layout(push_constant) uniform Push { Arguments args; };

void batch_offsets(uint batch, inout int a, inout int b, inout int c) {
  for (int d = args.batch_rank - 1; d >= 0; --d) {
    const uint extent = uint(args.batch_extents[d]);
    const int at = int(batch % extent);
    batch /= extent;
    a += at * args.a_view.batch[d];
    b += at * args.b_view.batch[d];
    c += at * args.c_view.batch[d];
  }
}
