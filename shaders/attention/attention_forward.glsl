// o = softmax(scores) v, and each row's maximum and sum of exponentials. The maximum and the sum of a row are those of
// the keys seen so far; what was summed under a lower maximum is scaled down when a higher one turns up.
#define OPERANDS 6
#define BLOCKS 1
#include "attention.glsl"

const int kQ = 0, kK = 1, kV = 2, kO = 3, kHighest = 4, kTotal = 5;

// One for each of an invocation's rows.
#define ROW_STATES (BLOCK_ROWS * LANE_COLUMNS)
shared float row_maximum[ROW_STATES];  // the same in all invocations of a row
shared float row_sum[ROW_STATES];      // of the invocation's columns
shared float row_scale[ROW_STATES];    // of what was summed before
shared float part[ROW_STATES];         // maximum of the invocation's columns of a block

int own_state(int i) { return (LANE_ROW * TILE_ROWS + i) * LANE_COLUMNS + LANE_COLUMN; }

void scale_rows(inout float sum[TILE_ROWS][EACH]) {
  [[unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
    const float scale = row_scale[own_state(i)];
    [[unroll]] for (int j = 0; j < EACH; ++j) sum[i][j] *= scale;
  }
}

void main() {
  KERNEL_BEGIN
  const int m = args.queries, n = args.keys, d = args.d, e = args.e;
  const uint blocks_m = uint(m + BLOCK_ROWS - 1) / BLOCK_ROWS;
  const uint tasks = blocks_m * uint(args.batches);
  // A power of two, with which all weights together are at most 1, as those of the softmax are: what they weigh cannot
  // overflow before it is divided by their sum.
  const float share = ldexp(1.0, -(findMSB(max(n, 1)) + 1));
  [[dont_unroll]] for (uint task = gl_WorkGroupID.x; task < tasks; task += all_groups) {
    const uint batch = task / blocks_m;
    const int first = int(blocks_m - 1u - task % blocks_m) * BLOCK_ROWS;  // those with the most work begin
    KERNEL_BATCH(batch)
    Matrix q = matrix(kQ, batch, m), k = matrix(kK, batch, n), v = matrix(kV, batch, n);
    [[dont_unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
      row_maximum[own_state(i)] = -infinity();
      row_sum[own_state(i)] = 0.0;
    }
    SYNC();  // the states of others may be read before the first block ends: a mask of nothing, no keys at all
    float sum[TILE_ROWS][EACH];
    clear(sum);
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
        part[own_state(i)] = most;
      }
      SYNC();
      bool nothing = true;
      [[dont_unroll]] for (int r = 0; r < BLOCK_ROWS; ++r) {
        float most = -infinity();
        [[dont_unroll]] for (int l = 0; l < LANE_COLUMNS; ++l) most = max(most, part[r * LANE_COLUMNS + l]);
        nothing = nothing && mask_weight(most) == 0.0;
      }
      if (nothing) keys = 0;
      SYNC();
    }
#endif

    [[dont_unroll]] for (int key = 0; key < keys; key += BLOCK_COLUMNS) {
#ifdef CAUSAL
      if (key > last_key && !asked) {
        // Only masked keys are left, and maxima only rise.
        asked = true;
        bool nothing = true;
        [[dont_unroll]] for (int r = 0; r < BLOCK_ROWS; ++r)
          nothing = nothing && mask_weight(row_maximum[r * LANE_COLUMNS]) == 0.0;
        if (nothing) break;
      }
#endif
      multiply_rows(0, q, first, k, key, d);
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
        part[own_state(i)] = most;
      }
      SYNC();
      [[dont_unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
        const int r = LANE_ROW * TILE_ROWS + i;
        const int own = own_state(i);
        const float before = row_maximum[own];
        float most = before;
        [[unroll]] for (int l = 0; l < LANE_COLUMNS; ++l) most = max(most, part[r * LANE_COLUMNS + l]);
        const float base = most == -infinity() ? 0.0 : most;  // all of them -infinity: nothing so far
        const float scale = f_exp(before - base);
        float total = row_sum[own] * scale;
        COLUMN_LOOP for (int j = 0; j < TILE_COLUMNS; ++j) {
          const int at = in_block(r, LANE_COLUMN + j * LANE_COLUMNS);
          const float weight = f_exp(blocks[at] - base) * share;
          blocks[at] = weight;
          total += weight;
        }
        row_maximum[own] = most;
        row_sum[own] = total;
        row_scale[own] = scale;
      }
      SYNC();
      scale_rows(sum);
      accumulate(0, min(BLOCK_COLUMNS, n - key), v, key, e, sum);
      SYNC();  // before the next block overwrites this one
    }

    Matrix highest = matrix(kHighest, batch, m), totals = matrix(kTotal, batch, m);
    [[dont_unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
      const int r = LANE_ROW * TILE_ROWS + i;
      float total = 0.0;
      [[dont_unroll]] for (int l = 0; l < LANE_COLUMNS; ++l) total += row_sum[r * LANE_COLUMNS + l];
      // Keys that are all at -infinity are not a number below their maximum; of no keys at all nothing is summed.
      if (total == 0.0 && keys != 0) total = quiet_nan();
      row_scale[own_state(i)] = keys == 0 ? 0.0 : 1.0 / total;
      if (LANE_COLUMN == 0 && first + r < m) {
        MEMORY(highest).v[row_of(highest, first + r)] = row_maximum[r * LANE_COLUMNS];
        MEMORY(totals).v[row_of(totals, first + r)] = total / share;
      }
    }
    scale_rows(sum);
    store_rows(matrix(kO, batch, m), first, e, sum);
    SYNC();  // before the next task begins with the states
  }
}
