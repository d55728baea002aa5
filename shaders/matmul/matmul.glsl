// P[b, m, n] = sum over segments of scale * sum over k of A[b, m, k] B[b, k, n], with strides for everything, and an
// epilogue on every element of P. The arguments, and how elements are read; matmul_tile.glsl, matmul_shared.glsl and
// matmul_vector.glsl are ways to compute it.
//
// The includer defines MEMORY (an element of C, and of A and B unless they say otherwise), VECTOR (four of it in
// registers), ALIGN (its bytes) and MULTIPLY_ADD. Further, where they differ:
//   VALUE                              an element in registers
//   SMALL_MEMORY                       MEMORY has no vectors
//   A_MEMORY, A_ALIGN                  an element of A in memory, its bytes
//   A_FOUR, A_SMALL                    four of it in memory, or that there is no such type
//   A_LOAD(memory, e)                  element number e as a VALUE
//   A_VALUES(x)                        A_FOUR as a VECTOR
//   A_RAW, A_WIDE, A_FOUR_OF(raw, f)   16 bytes in registers (or four elements, where they are more), how many elements
//                                      that is, and number f of the fours in it as a VECTOR; none: A_FOUR
//   A_BEGIN(segment)                   statements ahead of a segment's loads
// and the same with B_ for B, and
//   C_STORE(memory, e, value)          stores a VALUE as element number e
// Where there is more than one segment, or a kernel as the epilogue, the text is put together at run time
// (engine/device/vulkan/products/product_text.cpp), with these as well:
//   SEGMENTS, SCALE(slot)              how many, and the factor that eight bytes of the table hold; none: all are 1
//   SCALED_SEGMENT                     the only one with a factor, if there is only one
//   A_LAYOUT, B_LAYOUT                 of all segments: see matmul_tile.glsl
//   KERNEL_SLOTS, KERNEL_INTEGERS      members of Arguments that belong to the epilogue
//   KERNEL_BEGIN, KERNEL_BATCH(batch)  what it needs once, and in each batch
//   KERNEL_STORE(p, row, column)       evaluates it and stores its outputs
//   FOLLOWED                           a second product follows the first, with the next block of arguments: each
//                                      invocation stores the same elements of either
//   COHERENT, PUSH_MEMBERS             the qualifier of memory that other workgroups read, and further push constants,
//                                      where regions finish the dispatch
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require

#ifndef VALUE
#define VALUE MEMORY
#endif
#ifndef A_MEMORY
#define A_MEMORY MEMORY
#define A_ALIGN ALIGN
#define A_FOUR VECTOR
#define A_LOAD(memory, e) VALUE(memory.v[e])
#define A_VALUES(x) (x)
#ifdef SMALL_MEMORY
#define A_SMALL
#endif
#endif
#ifndef B_MEMORY
#define B_MEMORY MEMORY
#define B_ALIGN ALIGN
#define B_FOUR VECTOR
#define B_LOAD(memory, e) VALUE(memory.v[e])
#define B_VALUES(x) (x)
#ifdef SMALL_MEMORY
#define B_SMALL
#endif
#endif

#ifndef C_STORE
#define C_STORE(memory, e, value) memory.v[e] = MEMORY(value)
#endif

#ifndef COHERENT
#define COHERENT
#endif

#ifndef PUSH_MEMBERS
#define PUSH_MEMBERS
#endif

#ifndef A_BEGIN
#define A_BEGIN(segment)
#endif
#ifndef B_BEGIN
#define B_BEGIN(segment)
#endif

layout(buffer_reference, std430, buffer_reference_align = ALIGN) COHERENT buffer Memory { MEMORY v[]; };
layout(buffer_reference, std430, buffer_reference_align = A_ALIGN) readonly buffer MemoryA { A_MEMORY v[]; };
layout(buffer_reference, std430, buffer_reference_align = B_ALIGN) readonly buffer MemoryB { B_MEMORY v[]; };

// `bytes`: a constant, a power of two.
uvec2 address_of(uvec2 address, int element, uint bytes) {
  uint carry;
  const uint low = uaddCarry(address.x, uint(element) * bytes, carry);
  return uvec2(low, address.y + (bytes == 1u ? 0u : uint(element) >> (32u - uint(findLSB(bytes)))) + carry);
}

// Four neighbouring elements, at the alignment of one, or (_aligned) of four.
#ifdef A_SMALL
#define A_AT(memory, e) \
  VECTOR(A_LOAD(memory, e), A_LOAD(memory, (e) + 1), A_LOAD(memory, (e) + 2), A_LOAD(memory, (e) + 3))
#define A_AT_ALIGNED(memory, e) A_AT(memory, e)
#define A_RAW VECTOR
#define A_WIDE 4
#define A_FOUR_OF(raw, f) (raw)
#define A_WIDE_AT(memory, e) A_AT(memory, e)
#else
#ifndef A_RAW
#define A_RAW A_FOUR
#define A_WIDE 4
#define A_FOUR_OF(raw, f) A_VALUES(raw)
#endif
layout(buffer_reference, scalar, buffer_reference_align = A_ALIGN) readonly buffer FourA { A_FOUR v; };
layout(buffer_reference, scalar, buffer_reference_align = 4 * A_ALIGN) readonly buffer AlignedA { A_FOUR v; };
#define A_AT(memory, e) A_VALUES(FourA(address_of(uvec2(memory), e, A_ALIGN)).v)
layout(buffer_reference, scalar, buffer_reference_align = A_WIDE * A_ALIGN) readonly buffer WideA { A_RAW v; };
#define A_WIDE_AT(memory, e) WideA(address_of(uvec2(memory), e, A_ALIGN)).v
#define A_AT_ALIGNED(memory, e) A_VALUES(AlignedA(address_of(uvec2(memory), e, A_ALIGN)).v)
#endif
#ifdef B_SMALL
#define B_AT(memory, e) \
  VECTOR(B_LOAD(memory, e), B_LOAD(memory, (e) + 1), B_LOAD(memory, (e) + 2), B_LOAD(memory, (e) + 3))
#define B_AT_ALIGNED(memory, e) B_AT(memory, e)
#define B_RAW VECTOR
#define B_WIDE 4
#define B_FOUR_OF(raw, f) (raw)
#define B_WIDE_AT(memory, e) B_AT(memory, e)
#else
#ifndef B_RAW
#define B_RAW B_FOUR
#define B_WIDE 4
#define B_FOUR_OF(raw, f) B_VALUES(raw)
#endif
layout(buffer_reference, scalar, buffer_reference_align = B_ALIGN) readonly buffer FourB { B_FOUR v; };
layout(buffer_reference, scalar, buffer_reference_align = 4 * B_ALIGN) readonly buffer AlignedB { B_FOUR v; };
#define B_AT(memory, e) B_VALUES(FourB(address_of(uvec2(memory), e, B_ALIGN)).v)
layout(buffer_reference, scalar, buffer_reference_align = B_WIDE * B_ALIGN) readonly buffer WideB { B_RAW v; };
#define B_WIDE_AT(memory, e) WideB(address_of(uvec2(memory), e, B_ALIGN)).v
#define B_AT_ALIGNED(memory, e) B_VALUES(AlignedB(address_of(uvec2(memory), e, B_ALIGN)).v)
#endif

// Element number = bias + row * rows + column * columns + sum(batch coordinate * batch[d]). The address was lowered
// by bias elements, so that no element number is negative where a stride is.
struct View {
  int bias;
  int rows, columns;
  int batch[9];
};

#ifndef SEGMENTS
#define SEGMENTS 1
#endif

// One sum takes up all segments where at most one has a factor: it comes first, and the sum is multiplied once. Else
// each segment has a sum of its own, and TOTALS is defined.
#ifdef SCALED_SEGMENT
#define SEGMENT_OF(turn) ((turn) == 0 ? SCALED_SEGMENT : (turn) <= SCALED_SEGMENT ? (turn)-1 : (turn))
#else
#define SEGMENT_OF(turn) (turn)
#ifdef SCALE
#define TOTALS
#endif
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
#define KERNEL_STORE(p, row, column) C_STORE(c, c_at + (row) * c_row + (column) * c_column, p);
#endif

struct Segment {
  MemoryA a;
  MemoryB b;
  uvec2 scale;
};

struct Block {
  Segment segments[SEGMENTS];
  KERNEL_SLOTS
  int batches, m, n;
  int batch_rank;
  int batch_extents[9];
  int k[SEGMENTS];
  View views[VIEWS];  // A and B of each segment, then C
  KERNEL_INTEGERS
};
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments { Block blocks[]; };

// The address of the arguments, a block for each product of the dispatch, and how many workgroups there are along x in
// all: a dispatch may be handed over in parts, and gl_NumWorkGroups counts those of one part. gl_WorkGroupID counts on
// from part to part. Products share nothing: each has the workgroups of one y.
layout(push_constant) uniform Push { Arguments products; uint all_groups; PUSH_MEMBERS };
#ifdef FOLLOWED
uint product = 0u;  // 0, then 1
#define args products.blocks[product]
#else
#define args products.blocks[gl_WorkGroupID.y]
#endif

// How many segments there are, for loops over them in a loop over tiles. Quirk: llvmpipe of Mesa 26 enters a loop of
// constantly many turns also where no invocation is left (or where a workgroup has no tile, as those of the smaller of
// several products have), and reads through the address that none of them has. So this looks like an argument; m, the
// rows of C, is at least 1.
#define SEGMENT_COUNT(m) min(SEGMENTS, SEGMENTS * min(m, 1))

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

// Row and column of tile number t, and its batch: down the columns of a band of eight rows of tiles, so that
// neighbouring workgroups read the same of B while it is in a cache, and all of B is read once for eight rows.
uvec3 tile_in_bands(uint t, uint tiles_m, uint tiles_n) {
  const uint in_batch = t % (tiles_m * tiles_n), band = in_batch / (8u * tiles_n);
  const uint height = min(8u, tiles_m - 8u * band), in_band = in_batch - band * 8u * tiles_n;
  return uvec3(8u * band + in_band % height, in_band / height, t / (tiles_m * tiles_n));
}

// Whether `wide` elements at once, from an element on that is a multiple of them into a line, are aligned to all of
// their bytes (`wide` is a power of two) and either wholly there or not at all: lines begin at `at`, lie `line_stride` apart and have
// `along` elements.
bool is_whole(uvec2 address, int at, int line_stride, int along, int wide, int bytes) {
  return ((line_stride | along) & (wide - 1)) == 0 &&
         (address.x + uint(at) * uint(bytes)) % uint(wide * bytes) == 0u;
}
