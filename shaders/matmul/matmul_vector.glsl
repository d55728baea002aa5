// Few rows of C: a workgroup computes ROWS x COLUMNS elements, and its invocations share K. Neighbouring invocations
// take neighbouring columns, or with COLUMNS = 1 neighbouring steps of K. COLUMNS and the number of invocations are
// powers of two. The partial sums are added in a fixed order, as a tree in shared memory.
#include "matmul.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const int ROWS = 1;
layout(constant_id = 2) const int COLUMNS = 1;

shared VALUE partial[ROWS * int(gl_WorkGroupSize.x)];

void main() {
  const int m = args.m, n = args.n;
  const uint tiles_m = uint(m + ROWS - 1) / uint(ROWS);
  const uint tiles_n = uint(n + COLUMNS - 1) / uint(COLUMNS);
  const uint tiles = tiles_m * tiles_n * uint(args.batches);
  const int lane = int(gl_LocalInvocationIndex), lanes = int(gl_WorkGroupSize.x);
  const int part = lane / COLUMNS, parts = lanes / COLUMNS;
  const int segments = SEGMENT_COUNT(m);
  KERNEL_BEGIN
  for (uint t = gl_WorkGroupID.x; t < tiles; t += all_groups) {
    const int column = int(t % tiles_n) * COLUMNS + lane % COLUMNS;
    const uint q = t / tiles_n;
    const int first_row = int(q % tiles_m) * ROWS;
    const uint batch = q / tiles_m;
    VALUE total[ROWS];
    [[unroll]] for (int i = 0; i < ROWS; ++i) total[i] = VALUE(0);

    [[dont_unroll]] for (int segment = 0; segment < segments; ++segment) {
      MemoryA a = args.segments[segment].a;
      MemoryB b = args.segments[segment].b;
      A_BEGIN(segment)
      B_BEGIN(segment)
      const int k = args.k[segment];
      const int a_row = args.views[2 * segment].rows, a_k = args.views[2 * segment].columns;
      const int b_k = args.views[2 * segment + 1].rows, b_column = args.views[2 * segment + 1].columns;
      const int a_at = element_at(2 * segment, batch);
      // Outside of C the last row or column is repeated.
      const int b_at = element_at(2 * segment + 1, batch) + min(column, n - 1) * b_column;
      int row_at[ROWS];
      [[unroll]] for (int i = 0; i < ROWS; ++i) row_at[i] = a_at + min(first_row + i, m - 1) * a_row;
#ifdef SCALE
      VALUE sum[ROWS];
      [[unroll]] for (int i = 0; i < ROWS; ++i) sum[i] = VALUE(0);
#else
#define sum total
#endif
      int l = 0;
      // Fours along K, where both operands have them aligned.
      const bool vectors = a_k == 1 && b_k == 1 && a_row % 4 == 0 && b_column % 4 == 0 &&
                           (uvec2(a).x + uint(a_at) * A_ALIGN) % (4 * A_ALIGN) == 0 &&
                           (uvec2(b).x + uint(b_at) * B_ALIGN) % (4 * B_ALIGN) == 0;
      if (vectors) {
        for (int f = part * 4; f + 4 <= k; f += parts * 4) {
          const VECTOR bv = B_AT_ALIGNED(b, b_at + f);
          [[unroll]] for (int i = 0; i < ROWS; ++i) {
            const VECTOR av = A_AT_ALIGNED(a, row_at[i] + f);
            [[unroll]] for (int s = 0; s < 4; ++s) sum[i] = MULTIPLY_ADD(av[s], bv[s], sum[i]);
          }
        }
        l = k / 4 * 4;
      }
      for (l += part; l < k; l += parts) {
        const VALUE bv = B_LOAD(b, b_at + l * b_k);
        [[unroll]] for (int i = 0; i < ROWS; ++i)
          sum[i] = MULTIPLY_ADD(A_LOAD(a, row_at[i] + l * a_k), bv, sum[i]);
      }
#ifdef SCALE
      const VALUE scale = VALUE(SCALE(args.segments[segment].scale));
      [[unroll]] for (int i = 0; i < ROWS; ++i) total[i] = MULTIPLY_ADD(scale, sum[i], total[i]);
#endif
    }

    [[unroll]] for (int i = 0; i < ROWS; ++i) partial[i * lanes + lane] = total[i];
    for (int left = parts / 2; left > 0; left /= 2) {
      barrier();
      if (part < left) {
        [[unroll]] for (int i = 0; i < ROWS; ++i)
          partial[i * lanes + lane] += partial[i * lanes + lane + left * COLUMNS];
      }
    }

    // Those of part 0 read what they wrote themselves.
    if (part == 0 && column < n) {
      KERNEL_BATCH(batch)
      [[dont_unroll]] for (int i = 0; i < ROWS; ++i) {
        const VALUE p = partial[i * lanes + lane];
        const int r = first_row + i;
        if (r < m) {
          KERNEL_STORE(p, r, column)
        }
      }
    }
    barrier();
  }
}
