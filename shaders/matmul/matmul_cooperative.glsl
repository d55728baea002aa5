// A workgroup a tile of BM x BN elements of C, by four subgroups that take a quarter each in cooperative matrices of
// the shape that the device has: A and B are f16 in memory and C is summed up in f32, which is what the hardware does.
// Pieces of A and B, of BK steps, go through shared memory, as in matmul_shared.glsl, and so does C on its way to the
// epilogue, a row of matrices at a time.
//
// MATRIX_M, MATRIX_N, MATRIX_K: C (M x N) += A (M x K) B (K x N) is one product of a subgroup. They divide the quarter
// and BK. The types take them from specialisation constants of their own, which tells A, B and C apart where the sides
// are equal: engine/device/vulkan/spirv/cooperative.h.
#extension GL_NV_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "matmul.glsl"

layout(local_size_x_id = 0) in;
// As in matmul_tile.glsl.
layout(constant_id = 1) const int a_layout = 0;
layout(constant_id = 2) const int b_layout = 0;
layout(constant_id = 3) const int type_m = MATRIX_M;
layout(constant_id = 4) const int type_n = MATRIX_N;
layout(constant_id = 5) const int type_k = MATRIX_K;

#define ELEMENT float16_t
const int PART_M = BM / 2, PART_N = BN / 2;  // of a subgroup
const int COUNT_M = PART_M / MATRIX_M, COUNT_N = PART_N / MATRIX_N;
const int PAD = 8;    // rows start at multiples of 16 bytes
shared float16_t a_tile[BK * (BM + PAD)];
shared float16_t b_tile[BK * (BN + PAD)];
shared float c_tile[4 * MATRIX_M * PART_N];  // a row of matrices for each subgroup

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

#define MATRIX_A fcoopmatNV<16, gl_ScopeSubgroup, type_m, type_k>
#define MATRIX_B fcoopmatNV<16, gl_ScopeSubgroup, type_k, type_n>
#define MATRIX_C fcoopmatNV<32, gl_ScopeSubgroup, type_m, type_n>

void main() {
  const int m = args.m, n = args.n;
  const uint tiles_m = uint(m + BM - 1) / uint(BM);
  const uint tiles_n = uint(n + BN - 1) / uint(BN);
  const uint tiles = tiles_m * tiles_n * uint(args.batches);
  const int lane = int(gl_SubgroupInvocationID), lanes = int(gl_SubgroupSize);
  const int part_row = int(gl_SubgroupID) / 2 * PART_M;
  const int part_column = int(gl_SubgroupID) % 2 * PART_N;
  const int slab = int(gl_SubgroupID) * MATRIX_M * PART_N;
  KERNEL_BEGIN
  for (uint t = gl_WorkGroupID.x; t < tiles; t += all_groups) {
    const int first_column = int(t % tiles_n) * BN;
    const uint q = t / tiles_n;
    const int first_row = int(q % tiles_m) * BM;
    const uint batch = q / tiles_m;
    MATRIX_C sum[COUNT_M * COUNT_N];
    [[unroll]] for (int i = 0; i < COUNT_M * COUNT_N; ++i) sum[i] = MATRIX_C(0.0);
#ifdef SCALE
    MATRIX_C total[COUNT_M * COUNT_N];
    [[unroll]] for (int i = 0; i < COUNT_M * COUNT_N; ++i) total[i] = MATRIX_C(0.0);
#endif

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
      [[dont_unroll]] for (int l = 0; l < k; l += BK) {
        stage_a(a, a_at + l * a_k, a_row, a_k, m - first_row, k - l, a_vectors);
        stage_b(b, b_at + l * b_k, b_column, b_k, n - first_column, k - l, b_vectors);
        barrier();
        [[unroll]] for (int s = 0; s < BK; s += MATRIX_K) {
          MATRIX_A av[COUNT_M];
          MATRIX_B bv[COUNT_N];
          [[unroll]] for (int i = 0; i < COUNT_M; ++i)
            coopMatLoadNV(av[i], a_tile, uint(s * (BM + PAD) + part_row + i * MATRIX_M), uint(BM + PAD), true);
          [[unroll]] for (int j = 0; j < COUNT_N; ++j)
            coopMatLoadNV(bv[j], b_tile, uint(s * (BN + PAD) + part_column + j * MATRIX_N), uint(BN + PAD), false);
          [[unroll]] for (int i = 0; i < COUNT_M; ++i)
            [[unroll]] for (int j = 0; j < COUNT_N; ++j)
              sum[i * COUNT_N + j] = coopMatMulAddNV(av[i], bv[j], sum[i * COUNT_N + j]);
        }
        barrier();
      }
#ifdef SCALE
      const float scale = float(SCALE(args.segments[segment].scale));
      [[unroll]] for (int i = 0; i < COUNT_M * COUNT_N; ++i) {
        total[i] = total[i] + sum[i] * scale;
        sum[i] = MATRIX_C(0.0);
      }
#endif
    }
#ifdef SCALE
    [[unroll]] for (int i = 0; i < COUNT_M * COUNT_N; ++i) sum[i] = total[i];
#endif

    KERNEL_BATCH(batch)
    // One copy of the epilogue: the rows of matrices come to the front in turn.
    [[dont_unroll]] for (int i = 0; i < COUNT_M; ++i) {
      [[unroll]] for (int j = 0; j < COUNT_N; ++j)
        coopMatStoreNV(sum[j], c_tile, uint(slab + j * MATRIX_N), uint(PART_N), false);
      [[unroll]] for (int next = COUNT_N; next < COUNT_M * COUNT_N; ++next) sum[next - COUNT_N] = sum[next];
      subgroupBarrier();
      [[dont_unroll]] for (int e = lane; e < MATRIX_M * PART_N; e += lanes) {
        const float p = c_tile[slab + e];
        const int r = first_row + part_row + i * MATRIX_M + e / PART_N;
        const int column_e = first_column + part_column + e % PART_N;
        if (r < m && column_e < n) {
          KERNEL_STORE(p, r, column_e)
        }
      }
      subgroupBarrier();
    }
  }
}
