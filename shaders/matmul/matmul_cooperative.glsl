// A workgroup a tile of BM x BN elements of C, by SUBGROUPS_M x SUBGROUPS_N x SUBGROUPS_K subgroups with cooperative
// matrices of the shape that the device has: A and B are f16 or bf16 in memory and C is summed up in f32, which is what
// the hardware does. Pieces of A and B, of BK steps, go through shared memory as they lie in memory; those of the next
// turn are on their way to registers meanwhile. The SUBGROUPS_K that share a part of C take every so many steps each.
// C goes through shared memory on its way to an epilogue, a matrix of every subgroup at a time.
//
// LANES: invocations of a workgroup. A_LAYOUT, B_LAYOUT: as in matmul_tile.glsl. MATRIX_BITS: 16 for f16, 32 for bf16
// (engine/device/vulkan/spirv/cooperative.h).
// MATRIX_M, MATRIX_N, MATRIX_K: C (M x N) += A (M x K) B (K x N) is one product of a subgroup. They are multiples of 8
// and divide a subgroup's part. The types take them from specialisation constants of their own, which tells A, B and C
// apart where the sides are equal.
#extension GL_NV_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "matmul.glsl"

layout(local_size_x = LANES) in;
layout(constant_id = 0) const int type_m = MATRIX_M;
layout(constant_id = 1) const int type_n = MATRIX_N;
layout(constant_id = 2) const int type_k = MATRIX_K;

const int PART_M = BM / SUBGROUPS_M, PART_N = BN / SUBGROUPS_N;  // of a subgroup
const int COUNT_M = PART_M / MATRIX_M, COUNT_N = PART_N / MATRIX_N;
const int SUBGROUPS = SUBGROUPS_M * SUBGROUPS_N * SUBGROUPS_K;
const int SLAB = MATRIX_M * MATRIX_N;

// Eights of elements, 16 bytes, in lines along the dimension that is contiguous in memory; a line has one more, so that
// neighbouring lines meet different banks.
#if A_LAYOUT == 2
const int A_LINES = BK, A_EIGHTS = BM / 8;
#define A_PLACE(row, step) ((step) * (A_EIGHTS + 1) + ((row) >> 3))
#else
const int A_LINES = BM, A_EIGHTS = BK / 8;
#define A_PLACE(row, step) ((row) * (A_EIGHTS + 1) + ((step) >> 3))
#endif
#if B_LAYOUT == 2
const int B_LINES = BK, B_EIGHTS = BN / 8;
#define B_PLACE(column, step) ((step) * (B_EIGHTS + 1) + ((column) >> 3))
#else
const int B_LINES = BN, B_EIGHTS = BK / 8;
#define B_PLACE(column, step) ((column) * (B_EIGHTS + 1) + ((step) >> 3))
#endif
const int A_TURNS = (A_LINES * A_EIGHTS + LANES - 1) / LANES;  // eights of an invocation
const int B_TURNS = (B_LINES * B_EIGHTS + LANES - 1) / LANES;

shared uvec4 a_tile[A_LINES * (A_EIGHTS + 1)];
shared uvec4 b_tile[B_LINES * (B_EIGHTS + 1)];
// Vulkan asks that a matrix in memory begins at a multiple of 16 bytes.
shared struct AlignedSlabs { uvec4 aligned; float v[SUBGROUPS * SLAB]; } c_memory;
#define c_tile c_memory.v

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer EightOfThem { uvec4 v; };
layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer SixteenBits { uint16_t v[]; };

// Up to eight elements that lie `stride` apart, the rest zeros.
uvec4 gathered(uvec2 memory, int from, int stride, int count) {
  uvec4 words = uvec4(0);
  [[dont_unroll]] for (int j = 0; j < 8; ++j) {
    uint bits = 0;
    if (j < count) bits = uint(SixteenBits(memory).v[from + j * stride]);
    words = words >> 16 | uvec4(words.yzw << 16, bits << 16);
  }
  return words;
}

#define MATRIX_A fcoopmatNV<MATRIX_BITS, gl_ScopeSubgroup, type_m, type_k>
#define MATRIX_B fcoopmatNV<MATRIX_BITS, gl_ScopeSubgroup, type_k, type_n>
#define MATRIX_C fcoopmatNV<32, gl_ScopeSubgroup, type_m, type_n>

#define PLACE place_a
#define FETCH fetch_a
#define KEEP keep_a
#define TILE a_tile
#define LINES A_LINES
#define EIGHTS A_EIGHTS
#include "matmul_eights.glsl"
#define PLACE place_b
#define FETCH fetch_b
#define KEEP keep_b
#define TILE b_tile
#define LINES B_LINES
#define EIGHTS B_EIGHTS
#include "matmul_eights.glsl"

void main() {
  const int m = args.m, n = args.n;
  const uint tiles_m = uint(m + BM - 1) / uint(BM);
  const uint tiles_n = uint(n + BN - 1) / uint(BN);
  const uint tiles = tiles_m * tiles_n * uint(args.batches);
  // Unsigned, so that divisions are shifts.
  const uint part = gl_SubgroupID / SUBGROUPS_K;
  const int subgroup = int(gl_SubgroupID), part_k = int(gl_SubgroupID % SUBGROUPS_K);
  const int part_row = int(part / SUBGROUPS_N) * PART_M;
  const int part_column = int(part % SUBGROUPS_N) * PART_N;
  const int segments = SEGMENT_COUNT(m);
  KERNEL_BEGIN
  for (uint t = gl_WorkGroupID.x; t < tiles; t += all_groups) {
    const uvec3 tile = tile_in_bands(t, tiles_m, tiles_n);
    const int first_row = int(tile.x) * BM, first_column = int(tile.y) * BN;
    const uint batch = tile.z;
    MATRIX_C sum[COUNT_M * COUNT_N];
    [[unroll]] for (int i = 0; i < COUNT_M * COUNT_N; ++i) sum[i] = MATRIX_C(0.0);
#ifdef TOTALS
    MATRIX_C total[COUNT_M * COUNT_N];
    [[unroll]] for (int i = 0; i < COUNT_M * COUNT_N; ++i) total[i] = MATRIX_C(0.0);
#endif

    [[dont_unroll]] for (int turn = 0; turn < segments; ++turn) {
      const int segment = SEGMENT_OF(turn);
      const uvec2 a = uvec2(args.segments[segment].a), b = uvec2(args.segments[segment].b);
      const int k = args.k[segment];
      const int a_row = args.views[2 * segment].rows, a_k = args.views[2 * segment].columns;
      const int b_k = args.views[2 * segment + 1].rows, b_column = args.views[2 * segment + 1].columns;
      const int a_at = element_at(2 * segment, batch) + first_row * a_row;
      const int b_at = element_at(2 * segment + 1, batch) + first_column * b_column;
#if A_LAYOUT == 2
      const int a_line = a_k, a_along = a_row;
      const bool a_whole = A_LAYOUT != 0 && k > 0 && is_whole(a, a_at, a_line, m, 8, 2);
#define A_LEFT(l) ivec2(k - (l), m - first_row)
#else
      const int a_line = a_row, a_along = a_k;
      const bool a_whole = A_LAYOUT != 0 && k > 0 && is_whole(a, a_at, a_line, k, 8, 2);
#define A_LEFT(l) ivec2(m - first_row, k - (l))
#endif
#if B_LAYOUT == 2
      const int b_line = b_k, b_along = b_column;
      const bool b_whole = B_LAYOUT != 0 && k > 0 && is_whole(b, b_at, b_line, n, 8, 2);
#define B_LEFT(l) ivec2(k - (l), n - first_column)
#else
      const int b_line = b_column, b_along = b_k;
      const bool b_whole = B_LAYOUT != 0 && k > 0 && is_whole(b, b_at, b_line, k, 8, 2);
#define B_LEFT(l) ivec2(n - first_column, k - (l))
#endif
      uvec4 next_a[A_TURNS], next_b[B_TURNS];
      int a_offsets[A_TURNS], b_offsets[B_TURNS];
      place_a(a_offsets, a_line, a_along);
      place_b(b_offsets, b_line, b_along);
      fetch_a(next_a, a, a_at, a_offsets, a_along, A_LEFT(0), a_whole);
      fetch_b(next_b, b, b_at, b_offsets, b_along, B_LEFT(0), b_whole);
      [[dont_unroll]] for (int l = 0; l < k; l += BK) {
        keep_a(next_a, A_LEFT(l));
        keep_b(next_b, B_LEFT(l));
        barrier();
        if (l + BK < k) {
          fetch_a(next_a, a, a_at + (l + BK) * a_k, a_offsets, a_along, A_LEFT(l + BK), a_whole);
          fetch_b(next_b, b, b_at + (l + BK) * b_k, b_offsets, b_along, B_LEFT(l + BK), b_whole);
        }
        [[unroll]] for (int i = 0; i < BK / SUBGROUPS_K; i += MATRIX_K) {
          const int s = i * SUBGROUPS_K + part_k * MATRIX_K;
          MATRIX_A av[COUNT_M];
          MATRIX_B bv[COUNT_N];
          [[unroll]] for (int i = 0; i < COUNT_M; ++i)
            coopMatLoadNV(av[i], a_tile, uint(A_PLACE(part_row + i * MATRIX_M, s)), uint(A_EIGHTS + 1), A_LAYOUT == 2);
          [[unroll]] for (int j = 0; j < COUNT_N; ++j)
            coopMatLoadNV(bv[j], b_tile, uint(B_PLACE(part_column + j * MATRIX_N, s)), uint(B_EIGHTS + 1),
                          B_LAYOUT != 2);
          [[unroll]] for (int i = 0; i < COUNT_M; ++i)
            [[unroll]] for (int j = 0; j < COUNT_N; ++j)
              sum[i * COUNT_N + j] = coopMatMulAddNV(av[i], bv[j], sum[i * COUNT_N + j]);
        }
        barrier();
      }
#ifdef SCALED_SEGMENT
      if (turn == 0) {
        const float scale = float(SCALE(args.segments[segment].scale));
        [[unroll]] for (int i = 0; i < COUNT_M * COUNT_N; ++i) sum[i] = sum[i] * scale;
      }
#endif
#ifdef TOTALS
      const float scale = float(SCALE(args.segments[segment].scale));
      [[unroll]] for (int i = 0; i < COUNT_M * COUNT_N; ++i) {
        total[i] = total[i] + sum[i] * scale;
        sum[i] = MATRIX_C(0.0);
      }
#endif
    }
#ifdef TOTALS
    [[unroll]] for (int i = 0; i < COUNT_M * COUNT_N; ++i) sum[i] = total[i];
#endif

    KERNEL_BATCH(batch)
#if !defined(ROWS_IN_TURN) && SUBGROUPS_K == 1
    // Without an epilogue, straight to memory: rows of C, of whole 16 bytes, where all of the tile is there. (Quirk: a
    // subgroupBarrier() that not all subgroups of a workgroup come to ends the others on llvmpipe of Mesa 26.)
    const int c_first = c_at + (first_row + part_row) * c_row + first_column + part_column;
    const bool straight = c_column == 1 && c_row > 0 && c_row % 4 == 0 && (uvec2(c).x + uint(c_first) * 4u) % 16u == 0u &&
                          first_row + BM <= m && first_column + BN <= n;
    if (straight) {
      [[unroll]] for (int i = 0; i < COUNT_M * COUNT_N; ++i)
        coopMatStoreNV(sum[i], c.v, uint(c_first + i / COUNT_N * MATRIX_M * c_row + i % COUNT_N * MATRIX_N),
                       uint(c_row), false);
    }
    const int left = straight ? 0 : COUNT_M * COUNT_N;
#else
    const int left = COUNT_M * COUNT_N;
#endif
    // One copy of the epilogue: the matrices come to the front in turn.
    [[dont_unroll]] for (int i = 0; i < left; ++i) {
      coopMatStoreNV(sum[0], c_tile, uint(subgroup * SLAB), uint(MATRIX_N), false);
      [[unroll]] for (int next = 1; next < COUNT_M * COUNT_N; ++next) sum[next - 1] = sum[next];
#if SUBGROUPS_K > 1
      barrier();
#else
      subgroupBarrier();
#endif
      const int lanes = int(gl_SubgroupSize);
      [[dont_unroll]] for (int e = part_k * lanes + int(gl_SubgroupInvocationID); e < SLAB; e += SUBGROUPS_K * lanes) {
        float p = c_tile[int(part) * SUBGROUPS_K * SLAB + e];
        [[unroll]] for (int other = 1; other < SUBGROUPS_K; ++other)
          p += c_tile[(int(part) * SUBGROUPS_K + other) * SLAB + e];
        const int r = first_row + part_row + i / COUNT_N * MATRIX_M + e / MATRIX_N;
        const int column_e = first_column + part_column + i % COUNT_N * MATRIX_N + e % MATRIX_N;
        if (r < m && column_e < n) {
          KERNEL_STORE(p, r, column_e)
        }
      }
#if SUBGROUPS_K > 1
      barrier();
#else
      subgroupBarrier();
#endif
    }
  }
}
