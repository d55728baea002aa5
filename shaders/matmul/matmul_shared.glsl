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
shared VALUE a_tile[BK * (BM + PAD)];
shared VALUE b_tile[BK * (BN + PAD)];

#define FETCH fetch_a
#define KEEP keep_a
#define NEXT next_a
#define STAGE_MEMORY MemoryA
#define STAGE_LOAD A_LOAD
#define STAGE_AT A_WIDE_AT
#define STAGE_RAW A_RAW
#define STAGE_WIDE A_WIDE
#define STAGE_FOUR A_FOUR_OF
#define STAGE_TILE a_tile
#define STAGE_ROWS BM
#define STAGE_LAYOUT a_layout
#include "matmul_stage.glsl"
#define FETCH fetch_b
#define KEEP keep_b
#define NEXT next_b
#define STAGE_MEMORY MemoryB
#define STAGE_LOAD B_LOAD
#define STAGE_AT B_WIDE_AT
#define STAGE_RAW B_RAW
#define STAGE_WIDE B_WIDE
#define STAGE_FOUR B_FOUR_OF
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
  const int segments = SEGMENT_COUNT(m);
  KERNEL_BEGIN
  for (uint t = gl_WorkGroupID.x; t < tiles; t += all_groups) {
    const uvec3 tile = tile_in_bands(t, tiles_m, tiles_n);
    const int first_row = int(tile.x) * BM, first_column = int(tile.y) * BN;
    const uint batch = tile.z;
    VECTOR sum[TM * FOURS];
    [[unroll]] for (int i = 0; i < TM * FOURS; ++i) sum[i] = VECTOR(0);
#ifdef TOTALS
    VECTOR total[TM * FOURS];
    [[unroll]] for (int i = 0; i < TM * FOURS; ++i) total[i] = VECTOR(0);
#endif

    [[dont_unroll]] for (int turn = 0; turn < segments; ++turn) {
      const int segment = SEGMENT_OF(turn);
      MemoryA a = args.segments[segment].a;
      MemoryB b = args.segments[segment].b;
      A_BEGIN(segment)
      B_BEGIN(segment)
      const int k = args.k[segment];
      const int a_row = args.views[2 * segment].rows, a_k = args.views[2 * segment].columns;
      const int b_k = args.views[2 * segment + 1].rows, b_column = args.views[2 * segment + 1].columns;
      const int a_at = element_at(2 * segment, batch) + first_row * a_row;
      const int b_at = element_at(2 * segment + 1, batch) + first_column * b_column;
      const bool a_whole = k == 0              ? false  // nothing may be read
                           : a_layout == 1 ? is_whole(uvec2(a), a_at, a_row, k, A_WIDE, A_ALIGN)
                           : a_layout == 2 ? is_whole(uvec2(a), a_at, a_k, m, A_WIDE, A_ALIGN)
                                           : false;
      const bool b_whole = k == 0          ? false
                           : b_layout == 1 ? is_whole(uvec2(b), b_at, b_column, k, B_WIDE, B_ALIGN)
                           : b_layout == 2 ? is_whole(uvec2(b), b_at, b_k, n, B_WIDE, B_ALIGN)
                                           : false;
      const int rows = m - first_row, columns = n - first_column;
      fetch_a(a, a_at, a_row, a_k, rows, k, a_whole);
      fetch_b(b, b_at, b_column, b_k, columns, k, b_whole);
      [[dont_unroll]] for (int l = 0; l < k; l += BK) {
        keep_a(a, a_at + l * a_k, a_row, a_k, rows, k - l, a_whole);
        keep_b(b, b_at + l * b_k, b_column, b_k, columns, k - l, b_whole);
        barrier();
        if (l + BK < k) {
          fetch_a(a, a_at + (l + BK) * a_k, a_row, a_k, rows, k - l - BK, a_whole);
          fetch_b(b, b_at + (l + BK) * b_k, b_column, b_k, columns, k - l - BK, b_whole);
        }
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
#ifdef SCALED_SEGMENT
      if (turn == 0) {
        const VECTOR scale = VECTOR(SCALE(args.segments[segment].scale));
        [[unroll]] for (int i = 0; i < TM * FOURS; ++i) sum[i] *= scale;
      }
#endif
#ifdef TOTALS
      const VECTOR scale = VECTOR(SCALE(args.segments[segment].scale));
      [[unroll]] for (int i = 0; i < TM * FOURS; ++i) {
        total[i] = MULTIPLY_ADD(scale, sum[i], total[i]);
        sum[i] = VECTOR(0);
      }
#endif
    }
#ifdef TOTALS
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
