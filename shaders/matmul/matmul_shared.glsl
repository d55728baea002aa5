// A workgroup a tile of BM x BN elements of C, an invocation TM x TN of them. Pieces of A and B, BK steps of K long, go
// through shared memory, where every element is read by many invocations after one load. BM, BN and BK are multiples
// of 4, TM divides BM, TN is a multiple of 4 that divides BN, and the workgroup has (BM / TM) (BN / TN) invocations.
#include "matmul.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const int BM = 64;
layout(constant_id = 2) const int BN = 64;
layout(constant_id = 3) const int BK = 16;
layout(constant_id = 4) const int TM = 4;
layout(constant_id = 5) const int TN = 4;
// As in matmul_tile.glsl.
layout(constant_id = 6) const int a_layout = 0;
layout(constant_id = 7) const int b_layout = 0;

const int FOURS = TN / 4;
// Steps of K lie BM + PAD apart, so that stores of neighbouring steps meet different banks.
const int PAD = 4;
#define ELEMENT VALUE
shared VALUE a_tile[BK * (BM + PAD)];
shared VALUE b_tile[BK * (BN + PAD)];

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

void main() {
  const int m = args.m, n = args.n;
  const uint tiles_m = uint(m + BM - 1) / uint(BM);
  const uint tiles_n = uint(n + BN - 1) / uint(BN);
  const uint tiles = tiles_m * tiles_n * uint(args.batches);
  const int across = BN / TN;
  const int lane_row = int(gl_LocalInvocationIndex) / across * TM;
  const int lane_four = int(gl_LocalInvocationIndex) % across;
  KERNEL_BEGIN
  for (uint t = gl_WorkGroupID.x; t < tiles; t += all_groups) {
    const int first_column = int(t % tiles_n) * BN;
    const uint q = t / tiles_n;
    const int first_row = int(q % tiles_m) * BM;
    const uint batch = q / tiles_m;
    VECTOR sum[TM * FOURS];
    [[unroll]] for (int i = 0; i < TM * FOURS; ++i) sum[i] = VECTOR(0);
#ifdef SCALE
    VECTOR total[TM * FOURS];
    [[unroll]] for (int i = 0; i < TM * FOURS; ++i) total[i] = VECTOR(0);
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
        for (int s = 0; s < BK; ++s) {
          VECTOR bv[FOURS];
          [[unroll]] for (int g = 0; g < FOURS; ++g) {
            const int at = s * (BN + PAD) + (g * across + lane_four) * 4;
            bv[g] = VECTOR(b_tile[at], b_tile[at + 1], b_tile[at + 2], b_tile[at + 3]);
          }
          [[unroll]] for (int i = 0; i < TM; ++i) {
            const VECTOR av = VECTOR(a_tile[s * (BM + PAD) + lane_row + i]);
            [[unroll]] for (int g = 0; g < FOURS; ++g)
              sum[i * FOURS + g] = MULTIPLY_ADD(av, bv[g], sum[i * FOURS + g]);
          }
        }
        barrier();
      }
#ifdef SCALE
      const VECTOR scale = VECTOR(SCALE(args.segments[segment].scale));
      [[unroll]] for (int i = 0; i < TM * FOURS; ++i) {
        total[i] = MULTIPLY_ADD(scale, sum[i], total[i]);
        sum[i] = VECTOR(0);
      }
#endif
    }
#ifdef SCALE
    [[unroll]] for (int i = 0; i < TM * FOURS; ++i) sum[i] = total[i];
#endif

    KERNEL_BATCH(batch)
    // One copy of the epilogue for each of four columns: the sums come to the front in turn.
    [[dont_unroll]] for (int i = 0; i < TM * FOURS; ++i) {
      const VECTOR p = sum[0];
      [[unroll]] for (int next = 1; next < TM * FOURS; ++next) sum[next - 1] = sum[next];
      const int r = first_row + lane_row + i / FOURS;
      const int first = first_column + (i % FOURS * across + lane_four) * 4;
      [[unroll]] for (int j = 0; j < 4; ++j) {
        if (r < m && first + j < n) {
          KERNEL_STORE(p[j], r, first + j)
        }
      }
    }
  }
}
