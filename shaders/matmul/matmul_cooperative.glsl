// A workgroup a tile of 64 x 64 elements of C, by four subgroups with 2 x 2 cooperative matrices of 16 x 16 each: A and
// B are f16 in memory and C is summed up in f32, which is what the hardware does. Pieces of A and B go through shared
// memory, as in matmul_shared.glsl, and so does C on its way to the epilogue.
#extension GL_NV_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "matmul.glsl"

layout(local_size_x_id = 0) in;
// As in matmul_tile.glsl.
layout(constant_id = 1) const int a_layout = 0;
layout(constant_id = 2) const int b_layout = 0;

#define ELEMENT float16_t
const int BM = 64, BN = 64, BK = 32;
const int PART = 32;  // of a subgroup, in both directions
const int SIZE = 16;  // of a matrix, in all directions
const int COUNT = PART / SIZE;
const int PAD = 8;    // rows start at multiples of 16 bytes
shared float16_t a_tile[BK * (BM + PAD)];
shared float16_t b_tile[BK * (BN + PAD)];
shared float c_tile[BM * BN];

#define STAGE stage_a
#define STAGE_MEMORY MemoryA
#define STAGE_LOAD A_LOAD
#define STAGE_AT A_AT_ALIGNED
#define STAGE_TILE a_tile
#define STAGE_ROWS BM
#define STAGE_LAYOUT a_layout
#include "matmul_stage.glsl"
#define STAGE stage_b
#define STAGE_MEMORY MemoryB
#define STAGE_LOAD B_LOAD
#define STAGE_AT B_AT_ALIGNED
#define STAGE_TILE b_tile
#define STAGE_ROWS BN
#define STAGE_LAYOUT b_layout
#include "matmul_stage.glsl"

#define MATRIX(bits) fcoopmatNV<bits, gl_ScopeSubgroup, SIZE, SIZE>

void main() {
  const int m = args.m, n = args.n;
  const uint tiles_m = uint(m + BM - 1) / uint(BM);
  const uint tiles_n = uint(n + BN - 1) / uint(BN);
  const uint tiles = tiles_m * tiles_n * uint(args.batches);
  const int lane = int(gl_LocalInvocationIndex), lanes = int(gl_WorkGroupSize.x);
  const int part_row = int(gl_SubgroupID) / 2 * PART;
  const int part_column = int(gl_SubgroupID) % 2 * PART;
  KERNEL_BEGIN
  for (uint t = gl_WorkGroupID.x; t < tiles; t += all_groups) {
    const int first_column = int(t % tiles_n) * BN;
    const uint q = t / tiles_n;
    const int first_row = int(q % tiles_m) * BM;
    const uint batch = q / tiles_m;
    MATRIX(32) total[COUNT * COUNT];
    [[unroll]] for (int i = 0; i < COUNT * COUNT; ++i) total[i] = MATRIX(32)(0.0);

    [[dont_unroll]] for (int segment = 0; segment < SEGMENTS; ++segment) {
      MemoryA a = args.segments[segment].a;
      MemoryB b = args.segments[segment].b;
      A_BEGIN(segment)
      B_BEGIN(segment)
      const int k = args.k[segment];
      const int a_row = args.views[2 * segment].rows, a_k = args.views[2 * segment].columns;
      const int b_k = args.views[2 * segment + 1].rows, b_column = args.views[2 * segment + 1].columns;
      const int a_at = element_at(2 * segment, batch) + first_row * a_row;
      const int b_at = element_at(2 * segment + 1, batch) + first_column * b_column;
      const bool a_vectors = fours_aligned(uvec2(a), a_at, a_layout == 1 ? a_row : a_k, a_layout, A_ALIGN);
      const bool b_vectors = fours_aligned(uvec2(b), b_at, b_layout == 1 ? b_column : b_k, b_layout, B_ALIGN);
      MATRIX(32) sum[COUNT * COUNT];
      [[unroll]] for (int i = 0; i < COUNT * COUNT; ++i) sum[i] = MATRIX(32)(0.0);
      [[dont_unroll]] for (int l = 0; l < k; l += BK) {
        stage_a(a, a_at + l * a_k, a_row, a_k, m - first_row, k - l, a_vectors);
        stage_b(b, b_at + l * b_k, b_column, b_k, n - first_column, k - l, b_vectors);
        barrier();
        [[unroll]] for (int s = 0; s < BK; s += SIZE) {
          MATRIX(16) av[COUNT], bv[COUNT];
          [[unroll]] for (int i = 0; i < COUNT; ++i) {
            coopMatLoadNV(av[i], a_tile, uint(s * (BM + PAD) + part_row + i * SIZE), uint(BM + PAD), true);
            coopMatLoadNV(bv[i], b_tile, uint(s * (BN + PAD) + part_column + i * SIZE), uint(BN + PAD), false);
          }
          [[unroll]] for (int i = 0; i < COUNT; ++i)
            [[unroll]] for (int j = 0; j < COUNT; ++j)
              sum[i * COUNT + j] = coopMatMulAddNV(av[i], bv[j], sum[i * COUNT + j]);
        }
        barrier();
      }
#ifdef SCALE
      const float scale = float(SCALE(args.segments[segment].scale));
      [[unroll]] for (int i = 0; i < COUNT * COUNT; ++i) total[i] = total[i] + sum[i] * scale;
#else
      [[unroll]] for (int i = 0; i < COUNT * COUNT; ++i) total[i] = total[i] + sum[i];
#endif
    }

    [[unroll]] for (int i = 0; i < COUNT; ++i)
      [[unroll]] for (int j = 0; j < COUNT; ++j)
        coopMatStoreNV(total[i * COUNT + j], c_tile,
                       uint((part_row + i * SIZE) * BN + part_column + j * SIZE), uint(BN), false);
    barrier();
    KERNEL_BATCH(batch)
    [[dont_unroll]] for (int e = lane; e < BM * BN; e += lanes) {
      const float p = c_tile[e];
      const int r = first_row + e / BN;
      const int column_e = first_column + e % BN;
      if (r < m && column_e < n) {
        KERNEL_STORE(p, r, column_e)
      }
    }
    barrier();
  }
}
