// An invocation a tile of ROWS x 4 elements of C, ROWS being 1 or a multiple of 4. Neighbouring invocations have
// neighbouring columns. Four steps of K are loaded at once, as vectors along whichever dimension is contiguous.
// LANES: a workgroup's invocations.
#include "matmul.glsl"

layout(local_size_x = LANES) in;

// How the operands lie in memory: 0 strided, 1 contiguous along K, 2 contiguous along the rows of A or the columns
// of B.
#ifdef A_LAYOUT
const int a_layout = A_LAYOUT;
const int b_layout = B_LAYOUT;
#else
layout(constant_id = 0) const int a_layout = 0;
layout(constant_id = 1) const int b_layout = 0;
#endif

#if ROWS == 1
#define BLOCK 1
#else
#define BLOCK 4
#endif

void main() {
  const int m = args.m, n = args.n;
  const uint tiles_m = uint(m + ROWS - 1) / ROWS;
  const uint tiles_n = uint(n + 3) / 4;
  const uint tiles = tiles_m * tiles_n * uint(args.batches);
#if SEGMENTS > 1
  const int segments = SEGMENT_COUNT(m);
#endif
  KERNEL_BEGIN
  for (uint t = gl_GlobalInvocationID.x; t < tiles; t += all_groups * LANES) {
    const int column = int(t % tiles_n) * 4;
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
      // At an edge the vectors still stay inside: a block of rows or columns moves back over its neighbour's, and what
      // the neighbour stores is not stored again. Fewer than four rows or columns: the last one is repeated.
      int ar[ROWS], bc[4];
      [[unroll]] for (int i = 0; i < ROWS; ++i)
        ar[i] = a_at + min(min(row + i / BLOCK * BLOCK, max(m - BLOCK, 0)) + i % BLOCK, m - 1) * a_row;
      [[unroll]] for (int j = 0; j < 4; ++j) bc[j] = b_at + min(min(column, max(n - 4, 0)) + j, n - 1) * b_column;

      int l = 0;
      for (; l + 4 <= k; l += 4) {
        VECTOR bv[4];  // a vector of four columns for each step of K
        if (b_layout == 2) {
          [[unroll]] for (int s = 0; s < 4; ++s) bv[s] = B_AT(b, bc[0] + (l + s) * b_k);
        } else {
          VECTOR bk[4];
          if (b_layout == 1) {
            [[unroll]] for (int j = 0; j < 4; ++j) bk[j] = B_AT(b, bc[j] + l);
          } else {
            [[unroll]] for (int j = 0; j < 4; ++j) {
              const int at = bc[j] + l * b_k;
              bk[j] = VECTOR(B_LOAD(b, at), B_LOAD(b, at + b_k), B_LOAD(b, at + 2 * b_k),
                             B_LOAD(b, at + 3 * b_k));
            }
          }
          [[unroll]] for (int s = 0; s < 4; ++s) bv[s] = VECTOR(bk[0][s], bk[1][s], bk[2][s], bk[3][s]);
        }
        [[unroll]] for (int i = 0; i < ROWS; i += BLOCK) {
          VECTOR av[BLOCK];  // a vector of four steps of K for each row
#if BLOCK == 4
          if (a_layout == 2) {
            VECTOR ak[4];
            [[unroll]] for (int s = 0; s < 4; ++s) ak[s] = A_AT(a, ar[i] + (l + s) * a_k);
            [[unroll]] for (int r = 0; r < 4; ++r) av[r] = VECTOR(ak[0][r], ak[1][r], ak[2][r], ak[3][r]);
          } else
#endif
          if (a_layout == 1) {
            [[unroll]] for (int r = 0; r < BLOCK; ++r) av[r] = A_AT(a, ar[i + r] + l);
          } else {
            [[unroll]] for (int r = 0; r < BLOCK; ++r) {
              const int at = ar[i + r] + l * a_k;
              av[r] = VECTOR(A_LOAD(a, at), A_LOAD(a, at + a_k), A_LOAD(a, at + 2 * a_k),
                             A_LOAD(a, at + 3 * a_k));
            }
          }
          [[unroll]] for (int r = 0; r < BLOCK; ++r)
            [[unroll]] for (int s = 0; s < 4; ++s)
              sum[i + r] = MULTIPLY_ADD(VECTOR(av[r][s]), bv[s], sum[i + r]);
        }
      }
      for (; l < k; ++l) {
        VECTOR bv;
        [[unroll]] for (int j = 0; j < 4; ++j) bv[j] = B_LOAD(b, bc[j] + l * b_k);
        [[unroll]] for (int i = 0; i < ROWS; ++i)
          sum[i] = MULTIPLY_ADD(VECTOR(A_LOAD(a, ar[i] + l * a_k)), bv, sum[i]);
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
      const int r = min(row + i / BLOCK * BLOCK, max(m - BLOCK, 0)) + i % BLOCK;
      [[unroll]] for (int j = 0; j < 4; ++j) {
        const int column_j = min(column, max(n - 4, 0)) + j;
        // Not what is outside, nor what a neighbour has computed (rows of a block wholly outside included).
        if (r >= row + i / BLOCK * BLOCK && r < m && column_j >= column && column_j < n) {
          KERNEL_STORE(p[j], r, column_j)
        }
      }
    }
  }
}
