// A subgroup a workgroup: a tile of ROWS x 4 LANES elements of C, LANES (8 or more) being the subgroup's size. Each
// invocation has four columns. It loads one step of K in eight of every row of A, and the subgroup passes them around:
// for where a load costs many times a multiplication, whether or not its neighbours load the same.
#include "matmul.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const int ROWS = 1;

const int STEPS = 8;

// Step s of the eight: a column of A from invocation s, by four elements of a row of B.
#define STEP(s)                                                                                       \
  {                                                                                                   \
    VECTOR bv;                                                                                        \
    [[unroll]] for (int j = 0; j < 4; ++j) bv[j] = B_LOAD(b, bc[j] + (l + s) * b_k);                  \
    [[unroll]] for (int i = 0; i < ROWS; ++i)                                                         \
      sum[i] = MULTIPLY_ADD(VECTOR(subgroupBroadcast(mine[i], uint(s))), bv, sum[i]);                 \
  }

void main() {
  const int m = args.m, n = args.n;
  const int lanes = int(gl_WorkGroupSize.x), lane = int(gl_SubgroupInvocationID);
  const uint tiles_m = uint(m + ROWS - 1) / uint(ROWS);
  const uint tiles_n = uint(n + 4 * lanes - 1) / uint(4 * lanes);
  const uint tiles = tiles_m * tiles_n * uint(args.batches);
  const int segments = SEGMENT_COUNT(m);
  KERNEL_BEGIN
  for (uint t = gl_WorkGroupID.x; t < tiles; t += all_groups) {
    // Neighbours have neighbouring columns; an invocation's own lie `lanes` apart.
    const int column = int(t % tiles_n) * 4 * lanes + lane;
    const uint q = t / tiles_n;
    const int row = int(q % tiles_m) * ROWS;
    const uint batch = q / tiles_m;
    VECTOR sum[ROWS];
    [[unroll]] for (int i = 0; i < ROWS; ++i) sum[i] = VECTOR(0);
#ifdef SCALE
    VECTOR total[ROWS];
    [[unroll]] for (int i = 0; i < ROWS; ++i) total[i] = VECTOR(0);
#endif

#if SEGMENTS > 1
    [[dont_unroll]] for (int segment = 0; segment < segments; ++segment) {
#else
    {
      const int segment = 0;
#endif
      MemoryA a = args.segments[segment].a;
      MemoryB b = args.segments[segment].b;
      A_BEGIN(segment)
      B_BEGIN(segment)
      const int k = args.k[segment];
      const int a_row = args.views[2 * segment].rows, a_k = args.views[2 * segment].columns;
      const int b_k = args.views[2 * segment + 1].rows, b_column = args.views[2 * segment + 1].columns;
      const int a_at = element_at(2 * segment, batch), b_at = element_at(2 * segment + 1, batch);
      // Outside of C the last row or column is repeated.
      int ar[ROWS], bc[4];
      [[unroll]] for (int i = 0; i < ROWS; ++i) ar[i] = a_at + min(row + i, m - 1) * a_row;
      [[unroll]] for (int j = 0; j < 4; ++j) bc[j] = b_at + min(column + j * lanes, n - 1) * b_column;

      int l = 0;
      for (; l + STEPS <= k; l += STEPS) {
        VALUE mine[ROWS];
        [[unroll]] for (int i = 0; i < ROWS; ++i) mine[i] = A_LOAD(a, ar[i] + (l + lane % STEPS) * a_k);
        STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
      }
      for (; l < k; ++l) {
        VECTOR bv;
        [[unroll]] for (int j = 0; j < 4; ++j) bv[j] = B_LOAD(b, bc[j] + l * b_k);
        // Quirk: llvmpipe of Mesa 26 goes through a loop once more with no invocation left, and then also loads what all
        // invocations load alike.
        const int step = max(min(l, k - 1), 0);
        [[unroll]] for (int i = 0; i < ROWS; ++i)
          sum[i] = MULTIPLY_ADD(VECTOR(A_LOAD(a, ar[i] + step * a_k)), bv, sum[i]);
      }
#ifdef SCALE
      const VECTOR scale = VECTOR(SCALE(args.segments[segment].scale));
      [[unroll]] for (int i = 0; i < ROWS; ++i) {
        total[i] = MULTIPLY_ADD(scale, sum[i], total[i]);
        sum[i] = VECTOR(0);
      }
#endif
    }
#ifdef SCALE
    [[unroll]] for (int i = 0; i < ROWS; ++i) sum[i] = total[i];
#endif

    KERNEL_BATCH(batch)
#ifdef ROWS_IN_TURN
    // One copy of the epilogue for each column: the rows come to the front in turn.
    [[dont_unroll]] for (int i = 0; i < ROWS; ++i) {
      const VECTOR p = sum[0];
      [[unroll]] for (int next = 1; next < ROWS; ++next) sum[next - 1] = sum[next];
#else
    [[unroll]] for (int i = 0; i < ROWS; ++i) {
      const VECTOR p = sum[i];
#endif
      [[unroll]] for (int j = 0; j < 4; ++j) {
        if (row + i < m && column + j * lanes < n) {
          KERNEL_STORE(p[j], row + i, column + j * lanes)
        }
      }
    }
  }
}
