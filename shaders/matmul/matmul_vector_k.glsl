// Few rows of C, A and B contiguous along K: a subgroup computes ROWS x COLUMNS elements, and its invocations share K,
// 16 bytes of each operand at a time. No invocation waits for another subgroup, and nothing goes through shared memory.
// With SUBGROUPS, all of a workgroup share K, for products that have too few columns to keep a large GPU busy otherwise:
// each subgroup's sums go through shared memory and are added in the order of the subgroups.
#include "matmul.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const int ROWS = 1;
layout(constant_id = 2) const int COLUMNS = 1;

// Steps of K that are loaded at once: 16 bytes of the operand with the smaller elements.
#if A_WIDE > B_WIDE
const int STEPS = A_WIDE;
#else
const int STEPS = B_WIDE;
#endif
const int AHEAD = 8 / COLUMNS;  // turns whose loads of B are on their way together

#define MULTIPLY(l, b_raw)                                                                                     \
  [[unroll]] for (int i = 0; i < ROWS; ++i) {                                                                  \
    A_RAW a_raw[STEPS / A_WIDE];                                                                               \
    [[unroll]] for (int w = 0; w < STEPS / A_WIDE; ++w) a_raw[w] = A_WIDE_AT(a, row_at[i] + (l) + w * A_WIDE); \
    [[unroll]] for (int f = 0; f < STEPS / 4; ++f) {                                                           \
      const VECTOR av = A_FOUR_OF(a_raw[f / (A_WIDE / 4)], f % (A_WIDE / 4));                                  \
      [[unroll]] for (int j = 0; j < COLUMNS; ++j) {                                                           \
        const VECTOR bv = B_FOUR_OF(b_raw(j, f / (B_WIDE / 4)), f % (B_WIDE / 4));                             \
        [[unroll]] for (int s = 0; s < 4; ++s)                                                                 \
          sum[i * COLUMNS + j] = MULTIPLY_ADD(av[s], bv[s], sum[i * COLUMNS + j]);                             \
      }                                                                                                        \
    }                                                                                                          \
  }
#define RAW_OF(turn, j, w) raw[((turn) * COLUMNS + (j)) * (STEPS / B_WIDE) + (w)]

#ifdef SUBGROUPS
shared VALUE partial[SUBGROUPS * ROWS * COLUMNS];
#endif

void main() {
  const int m = args.m, n = args.n;
  const uint tiles_m = uint(m + ROWS - 1) / uint(ROWS);
  const uint tiles_n = uint(n + COLUMNS - 1) / uint(COLUMNS);
  const uint tiles = tiles_m * tiles_n * uint(args.batches);
#ifdef SUBGROUPS
  const int lanes = int(gl_WorkGroupSize.x), lane = int(gl_LocalInvocationIndex);
  const uint first_tile = gl_WorkGroupID.x, all_tiles = all_groups;
#else
  // A subgroup may have fewer invocations than its size says.
  const int lanes = subgroupAdd(1), lane = subgroupExclusiveAdd(1);
  const uint first_tile = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID, all_tiles = all_groups * gl_NumSubgroups;
#endif
#if SEGMENTS > 1
  const int segments = SEGMENT_COUNT(m);
#endif
  KERNEL_BEGIN
  for (uint t = first_tile; t < tiles; t += all_tiles) {
    const int first_column = int(t % tiles_n) * COLUMNS;
    const uint q = t / tiles_n;
    const int first_row = int(q % tiles_m) * ROWS;
    const uint batch = q / tiles_m;
    VALUE total[ROWS * COLUMNS];
    [[unroll]] for (int i = 0; i < ROWS * COLUMNS; ++i) total[i] = VALUE(0);

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
      int row_at[ROWS], column_at[COLUMNS];
      [[unroll]] for (int i = 0; i < ROWS; ++i) row_at[i] = a_at + min(first_row + i, m - 1) * a_row;
      [[unroll]] for (int j = 0; j < COLUMNS; ++j) column_at[j] = b_at + min(first_column + j, n - 1) * b_column;
#ifdef SCALE
      VALUE sum[ROWS * COLUMNS];
      [[unroll]] for (int i = 0; i < ROWS * COLUMNS; ++i) sum[i] = VALUE(0);
#else
#define sum total
#endif
      if (a_k == 1 && b_k == 1 && k % STEPS == 0 && is_whole(uvec2(a), a_at, a_row, k, A_WIDE, A_ALIGN) &&
          is_whole(uvec2(b), b_at, b_column, k, B_WIDE, B_ALIGN)) {
        int l = lane * STEPS;
        for (; l + (AHEAD - 1) * lanes * STEPS < k; l += AHEAD * lanes * STEPS) {
          B_RAW raw[AHEAD * COLUMNS * (STEPS / B_WIDE)];
          [[unroll]] for (int turn = 0; turn < AHEAD; ++turn)
            [[unroll]] for (int j = 0; j < COLUMNS; ++j)
              [[unroll]] for (int w = 0; w < STEPS / B_WIDE; ++w)
                RAW_OF(turn, j, w) = B_WIDE_AT(b, column_at[j] + l + turn * lanes * STEPS + w * B_WIDE);
          [[unroll]] for (int turn = 0; turn < AHEAD; ++turn) {
#define RAW_OF_TURN(j, w) RAW_OF(turn, j, w)
            MULTIPLY(l + turn * lanes * STEPS, RAW_OF_TURN)
          }
        }
        for (; l < k; l += lanes * STEPS) {
          B_RAW raw[COLUMNS * (STEPS / B_WIDE)];
          [[unroll]] for (int j = 0; j < COLUMNS; ++j)
            [[unroll]] for (int w = 0; w < STEPS / B_WIDE; ++w)
              RAW_OF(0, j, w) = B_WIDE_AT(b, column_at[j] + l + w * B_WIDE);
#define RAW_OF_LAST(j, w) RAW_OF(0, j, w)
          MULTIPLY(l, RAW_OF_LAST)
        }
      } else {
        for (int l = lane; l < k; l += lanes) {
          VALUE bv[COLUMNS];
          [[unroll]] for (int j = 0; j < COLUMNS; ++j) bv[j] = B_LOAD(b, column_at[j] + l * b_k);
          [[unroll]] for (int i = 0; i < ROWS; ++i) {
            const VALUE av = A_LOAD(a, row_at[i] + l * a_k);
            [[unroll]] for (int j = 0; j < COLUMNS; ++j)
              sum[i * COLUMNS + j] = MULTIPLY_ADD(av, bv[j], sum[i * COLUMNS + j]);
          }
        }
      }
#ifdef SCALE
      const VALUE scale = VALUE(SCALE(args.segments[segment].scale));
      [[unroll]] for (int i = 0; i < ROWS * COLUMNS; ++i) total[i] = MULTIPLY_ADD(scale, sum[i], total[i]);
#endif
    }

    [[unroll]] for (int i = 0; i < ROWS * COLUMNS; ++i) total[i] = subgroupAdd(total[i]);
#ifdef SUBGROUPS
    if (subgroupElect()) {
      [[unroll]] for (int i = 0; i < ROWS * COLUMNS; ++i) partial[int(gl_SubgroupID) * ROWS * COLUMNS + i] = total[i];
    }
    barrier();
#endif
    KERNEL_BATCH(batch)
    [[dont_unroll]] for (int e = lane; e < ROWS * COLUMNS; e += lanes) {
#ifdef SUBGROUPS
      VALUE p = partial[e];
      [[unroll]] for (int other = 1; other < SUBGROUPS; ++other) p += partial[other * ROWS * COLUMNS + e];
#else
      VALUE p = total[0];
      [[unroll]] for (int i = 1; i < ROWS * COLUMNS; ++i) p = e == i ? total[i] : p;
#endif
      const int r = first_row + e / COLUMNS, column_e = first_column + e % COLUMNS;
      if (r < m && column_e < n) {
        KERNEL_STORE(p, r, column_e)
      }
    }
#ifdef SUBGROUPS
    barrier();  // before the next tile's sums
#endif
  }
}
