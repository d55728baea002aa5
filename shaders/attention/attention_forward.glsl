// o = softmax(scores) v, and each row's maximum and sum of exponentials. The maximum and the sum of a row are those of
// the keys seen so far; what was summed under a lower maximum is scaled down when a higher one turns up.
#define OPERANDS 6
#define BLOCKS 1
#include "attention.glsl"

const int kQ = 0, kK = 1, kV = 2, kO = 3, kHighest = 4, kTotal = 5;

// One for each of an invocation's rows. A GPU has them in registers, which need unrolled loops.
#define ROW_STATES (BLOCK_ROWS * LANE_COLUMNS)
#ifdef WIDE
#define STATE(name) float name[TILE_ROWS]
#define ROW_LOOP [[unroll]]
int own_state(int i) { return i; }
#else
#define STATE(name) shared float name[ROW_STATES]
#define ROW_LOOP [[dont_unroll]]
int own_state(int i) { return (LANE_ROW * TILE_ROWS + i) * LANE_COLUMNS + LANE_COLUMN; }
#endif
STATE(row_maximum);             // the same in all invocations of a row
STATE(row_sum);                 // of the invocation's columns
#ifndef COOPERATIVE
STATE(row_scale);  // of what was summed before
#endif
shared float part[ROW_STATES];  // of the invocation's columns of a block: the maximum; in the end row_sum

int own_part(int i) { return (LANE_ROW * TILE_ROWS + i) * LANE_COLUMNS + LANE_COLUMN; }
float part_of(int i, int l) { return part[(LANE_ROW * TILE_ROWS + i) * LANE_COLUMNS + l]; }

#ifdef CAUSAL
// Whether what each invocation says of its rows is true of all of them.
shared uint objections;

bool agreed(bool own) {
  if (gl_LocalInvocationID.x == 0u) objections = 0u;
  SYNC();
  if (!own) atomicOr(objections, 1u);
  SYNC();
  const bool all_do = objections == 0u;
  SYNC();
  return all_do;
}
#endif

// The outputs of the block of queries. Cooperative matrices have them in their own way.
#ifdef COOPERATIVE
#define OUTPUTS
#define KEEP_WEIGHT(r, column, weight) p_tile.v[(r) * P_PITCH + (column)] = float16_t(weight)
#define KEEP_SCALE(i, scale)                                   \
  scale_of_row[LANE_ROW * TILE_ROWS + i] = scale;              \
  if (scale != 1.0) atomicOr(rescaled, 1u)
#else
#define OUTPUTS float sum[TILE_ROWS][EACH];
#define KEEP_WEIGHT(r, column, weight) blocks[in_block(r, column)] = weight
#define KEEP_SCALE(i, scale) row_scale[own_state(i)] = scale
#define clear_outputs() clear(sum)
#define scale_outputs() scale_rows(sum)
#define accumulate_outputs(count, v, key, e) accumulate(0, count, v, key, e, sum)
#define store_outputs(z, first, e) store_rows(z, first, e, sum)

void scale_rows(inout float sum[TILE_ROWS][EACH]) {
  [[unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
    const float scale = row_scale[own_state(i)];
    [[unroll]] for (int j = 0; j < EACH; ++j) sum[i][j] *= scale;
  }
}
#endif

void main() {
  KERNEL_BEGIN
  const int m = args.queries, n = args.keys, d = args.d, e = args.e;
  const uint blocks_m = uint(m + BLOCK_ROWS - 1) / BLOCK_ROWS;
  const uint tasks = blocks_m * uint(args.batches);
  // A power of two, with which all weights together are at most 1, as those of the softmax are: what they weigh cannot
  // overflow before it is divided by their sum.
#ifdef COOPERATIVE
  const float share = 1.0;  // f16 has no bits for less; weights and values of f16 add up far below what f32 holds
#else
  const float share = ldexp(1.0, -(findMSB(max(n, 1)) + 1));
#endif
  [[dont_unroll]] for (uint task = gl_WorkGroupID.x; task < tasks; task += all_groups) {
    const uint batch = task / blocks_m;
    const int first = int(blocks_m - 1u - task % blocks_m) * BLOCK_ROWS;  // those with the most work begin
    KERNEL_BATCH(batch)
    Matrix q = matrix(kQ, batch, m), k = matrix(kK, batch, n), v = matrix(kV, batch, n);
    ROW_LOOP for (int i = 0; i < TILE_ROWS; ++i) {
      row_maximum[own_state(i)] = -infinity();
      row_sum[own_state(i)] = 0.0;
    }
    OUTPUTS
    clear_outputs();
#ifdef COOPERATIVE
    begin_queries(q, first, d);
#endif
#ifdef CAUSAL
    const int last_key = last_seen(min(first + BLOCK_ROWS, m) - 1, batch);
    bool asked = false;
#endif
    int keys = n;
#ifdef IN_PARTS
    if (last_key < 0 && int(batch) >= args.part_batches) {
      // Nothing but masked keys. They weigh nothing beside the first keys of all, if those score high enough.
      const uint first_part = batch % uint(args.part_batches);
      KERNEL_BATCH(first_part)
      multiply_rows(0, q, first, matrix(kK, first_part, n), 0, d);
      [[dont_unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
        const int r = LANE_ROW * TILE_ROWS + i;
        float most = -infinity();
        COLUMN_LOOP for (int j = 0; j < TILE_COLUMNS; ++j) {
          const int column = LANE_COLUMN + j * LANE_COLUMNS;
          if (column < n) most = max(most, SCORE(blocks[in_block(r, column)], min(first + r, m - 1), column));
        }
        part[own_part(i)] = most;
      }
      SYNC();
      bool nothing = true;
      [[dont_unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
        float most = -infinity();
        [[dont_unroll]] for (int l = 0; l < LANE_COLUMNS; ++l) most = max(most, part_of(i, l));
        nothing = nothing && mask_weight(most) == 0.0;
      }
      if (agreed(nothing)) keys = 0;
    }
#endif

    [[dont_unroll]] for (int key = 0; key < keys; key += BLOCK_COLUMNS) {
#ifdef CAUSAL
      if (key > last_key && !asked) {
        // Only masked keys are left, and maxima only rise.
        asked = true;
        bool nothing = true;
        ROW_LOOP for (int i = 0; i < TILE_ROWS; ++i)
          nothing = nothing && mask_weight(row_maximum[own_state(i)]) == 0.0;
        if (agreed(nothing)) break;
      }
#endif
      multiply_rows(0, q, first, k, key, d);
#ifdef COOPERATIVE
      if (gl_LocalInvocationID.x == 0u) rescaled = 0u;
#endif
      [[dont_unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
        const int r = LANE_ROW * TILE_ROWS + i;
        float most = -infinity();
        COLUMN_LOOP for (int j = 0; j < TILE_COLUMNS; ++j) {
          const int column = LANE_COLUMN + j * LANE_COLUMNS;
          float score = -infinity();
          if (key + column < n) score = SCORE(blocks[in_block(r, column)], min(first + r, m - 1), key + column);
          blocks[in_block(r, column)] = score;
          most = max(most, score);
        }
        part[own_part(i)] = most;
      }
      SYNC();
      ROW_LOOP for (int i = 0; i < TILE_ROWS; ++i) {
        const int r = LANE_ROW * TILE_ROWS + i;
        const int own = own_state(i);
        const float before = row_maximum[own];
        float most = before;
        [[unroll]] for (int l = 0; l < LANE_COLUMNS; ++l) most = max(most, part_of(i, l));
        const float base = most == -infinity() ? 0.0 : most;  // all of them -infinity: nothing so far
        const float scale = WEIGHT(before - base);
        float total = row_sum[own] * scale;
        COLUMN_LOOP for (int j = 0; j < TILE_COLUMNS; ++j) {
          const int at = in_block(r, LANE_COLUMN + j * LANE_COLUMNS);
          const float weight = WEIGHT(blocks[at] - base) * share;
          KEEP_WEIGHT(r, LANE_COLUMN + j * LANE_COLUMNS, weight);
          total += weight;
        }
        row_maximum[own] = most;
        row_sum[own] = total;
        KEEP_SCALE(i, scale);
      }
      SYNC();
      scale_outputs();
      accumulate_outputs(min(BLOCK_COLUMNS, n - key), v, key, e);
      SYNC();  // before the next block overwrites this one
    }

    ROW_LOOP for (int i = 0; i < TILE_ROWS; ++i) part[own_part(i)] = row_sum[own_state(i)];
    SYNC();
    Matrix highest = matrix(kHighest, batch, m), totals = matrix(kTotal, batch, m);
    ROW_LOOP for (int i = 0; i < TILE_ROWS; ++i) {
      const int r = LANE_ROW * TILE_ROWS + i;
      float total = 0.0;
      [[dont_unroll]] for (int l = 0; l < LANE_COLUMNS; ++l) total += part_of(i, l);
      // Keys that are all at -infinity are not a number below their maximum; of no keys at all nothing is summed.
      if (total == 0.0 && keys != 0) total = quiet_nan();
      const float scale = keys == 0 ? 0.0 : 1.0 / total;
      KEEP_SCALE(i, scale);
      if (LANE_COLUMN == 0 && first + r < m) {
        MEMORY(highest).v[row_of(highest, first + r)] = row_maximum[own_state(i)];
        MEMORY(totals).v[row_of(totals, first + r)] = total / share;
      }
    }
#ifdef COOPERATIVE
    SYNC();  // scale_of_row is everyone's
#else
    scale_outputs();
#endif
    store_outputs(matrix(kO, batch, m), first, e);
    SYNC();  // before the next task begins with the parts
  }
}
