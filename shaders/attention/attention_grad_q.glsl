// dq = dR k: the gradient of the raw scores, computed again a block at a time, times the keys.
#define OPERANDS 8
#define BLOCKS 2
#define GRADIENTS
#include "attention.glsl"

const int kQ = 0, kK = 1, kV = 2, kGo = 3, kHighest = 4, kTotal = 5, kDelta = 6, kDq = 7;

void main() {
  KERNEL_BEGIN
  const int m = args.queries, n = args.keys, d = args.d, e = args.e;
  const uint blocks_m = uint(m + BLOCK_ROWS - 1) / BLOCK_ROWS;
  const uint tasks = blocks_m * uint(args.batches);
  [[dont_unroll]] for (uint task = gl_WorkGroupID.x; task < tasks; task += all_groups) {
    const uint batch = task / blocks_m;
    const int first = int(blocks_m - 1u - task % blocks_m) * BLOCK_ROWS;  // those with the most work begin
    KERNEL_BATCH(batch)
    Matrix q = matrix(kQ, batch, m), k = matrix(kK, batch, n), v = matrix(kV, batch, n);
    Matrix go = matrix(kGo, batch, m);
    const int highest = element_at(kHighest, batch), total = element_at(kTotal, batch);
    const int delta = element_at(kDelta, batch);
#ifdef COOPERATIVE
    begin_rows(q, go, first, d, e);
#else
    float sum[TILE_ROWS][EACH];
    clear(sum);
#endif
    int keys = n;
#ifdef CAUSAL
    const int visible = max(last_seen(min(first + BLOCK_ROWS, m) - 1, batch) + 1, 0);
    if (visible < n) {
      bool nothing = true;
      [[dont_unroll]] for (int r = first; r < min(first + BLOCK_ROWS, m); ++r)
        nothing = nothing && MASKED_SHARE(highest, total, r) == 0.0;
      if (nothing) keys = visible;
    }
#endif

    [[dont_unroll]] for (int key = 0; key < keys; key += BLOCK_COLUMNS) {
#ifdef COOPERATIVE
      multiply_both(k, v, key, n - key, d, e);
#else
      multiply_rows(0, q, first, k, key, d);
      multiply_rows(BLOCK_SIZE, go, first, v, key, e);
#endif
      [[dont_unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
        const int r = LANE_ROW * TILE_ROWS + i;
        const int query = min(first + r, m - 1);
        const float row_highest = OF_ROW(kHighest, highest, query);
        const float row_total = OF_ROW(kTotal, total, query);
        const float row_delta = OF_ROW(kDelta, delta, query);
        COLUMN_LOOP for (int j = 0; j < TILE_COLUMNS; ++j) {
          const int column = LANE_COLUMN + j * LANE_COLUMNS;
          if (key + column < n) {
            const float raw = blocks[in_block(r, column)];
            const float weight = WEIGHT(SCORE(raw, query, key + column) - row_highest) / row_total;
            const float d_score = weight * (blocks[BLOCK_SIZE + in_block(r, column)] - row_delta);
            blocks[in_block(r, column)] = GRADIENT(d_score, raw, query, key + column);
          } else {
            blocks[in_block(r, column)] = 0.0;
          }
        }
      }
#ifdef COOPERATIVE
      accumulate_both();
#else
      SYNC();
      accumulate(0, min(BLOCK_COLUMNS, n - key), k, key, d, sum);
#endif
      SYNC();  // before the next block overwrites this one
    }
#ifdef COOPERATIVE
    store_d(matrix(kDq, batch, m), first, d);
#else
    store_rows(matrix(kDq, batch, m), first, d, sum);
#endif
  }
}
