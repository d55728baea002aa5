// dk = dR^T q and dv = P^T go: a block of keys walks over the queries, so that nothing is added to from two sides.
#define OPERANDS 9
#define BLOCKS 2
#define GRADIENTS
#define OF_KEYS
#include "attention.glsl"

const int kQ = 0, kK = 1, kV = 2, kGo = 3, kHighest = 4, kTotal = 5, kDelta = 6, kDk = 7, kDv = 8;

// Of the query in an invocation's column number `j`.
#ifdef WIDE
#define HIGHEST of_query[0][j]
#define SHARE(x) ((x) * of_query[1][j])
#define DELTA of_query[2][j]
#else
#define HIGHEST OF_ROW(kHighest, highest, query + column)
#define SHARE(x) ((x) / OF_ROW(kTotal, total, query + column))
#define DELTA OF_ROW(kDelta, delta, query + column)
#endif

void main() {
  KERNEL_BEGIN
  const int m = args.queries, n = args.keys, d = args.d, e = args.e;
  const uint blocks_n = uint(n + BLOCK_ROWS - 1) / BLOCK_ROWS;
  const uint tasks = blocks_n * uint(args.batches);
  [[dont_unroll]] for (uint task = gl_WorkGroupID.x; task < tasks; task += all_groups) {
    const uint batch = task / blocks_n;
    const int first = int(task % blocks_n) * BLOCK_ROWS;
    KERNEL_BATCH(batch)
    Matrix q = matrix(kQ, batch, m), k = matrix(kK, batch, n), v = matrix(kV, batch, n);
    Matrix go = matrix(kGo, batch, m);
    const int highest = element_at(kHighest, batch), total = element_at(kTotal, batch);
    const int delta = element_at(kDelta, batch);
#ifdef COOPERATIVE
    begin_rows(k, v, first, d, e);
#else
    float k_sum[TILE_ROWS][EACH], v_sum[TILE_ROWS][EACH];
    clear(k_sum);
    clear(v_sum);
#endif

    [[dont_unroll]] for (int query = 0; query < m; query += BLOCK_COLUMNS) {
      const int count = min(BLOCK_COLUMNS, m - query);
#ifdef CAUSAL
      if (first > last_seen(query + count - 1, batch)) {
        bool nothing = true;
        [[dont_unroll]] for (int c = 0; c < count; ++c)
          nothing = nothing && MASKED_SHARE(highest, total, query + c) == 0.0;
        if (nothing) continue;
      }
#endif
#ifdef WIDE
      float of_query[3][TILE_COLUMNS];
      [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j) {
        const int row = min(query + LANE_COLUMN + j * LANE_COLUMNS, m - 1);
        of_query[0][j] = OF_ROW(kHighest, highest, row);
        of_query[1][j] = 1.0 / OF_ROW(kTotal, total, row);
        of_query[2][j] = OF_ROW(kDelta, delta, row);
      }
#endif
#ifdef COOPERATIVE
      multiply_both(q, go, query, count, d, e);
#else
      multiply_rows(0, k, first, q, query, d);
      multiply_rows(BLOCK_SIZE, v, first, go, query, e);
#endif
      [[dont_unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
        const int r = LANE_ROW * TILE_ROWS + i;
        const int key = min(first + r, n - 1);
        COLUMN_LOOP for (int j = 0; j < TILE_COLUMNS; ++j) {
          const int column = LANE_COLUMN + j * LANE_COLUMNS;
          if (column < count) {
            const int at = in_block(r, column);
            const float raw = blocks[at];
            const float weight = SHARE(WEIGHT(SCORE(raw, query + column, key) - HIGHEST));
            const float d_score = weight * (blocks[BLOCK_SIZE + at] - DELTA);
            blocks[at] = GRADIENT(d_score, raw, query + column, key);
            blocks[BLOCK_SIZE + at] = weight;
          } else {
            blocks[in_block(r, column)] = 0.0;
            blocks[BLOCK_SIZE + in_block(r, column)] = 0.0;
          }
        }
      }
#ifdef COOPERATIVE
      accumulate_both();
#else
      SYNC();
      accumulate(0, count, q, query, d, k_sum);
      accumulate(BLOCK_SIZE, count, go, query, e, v_sum);
#endif
      SYNC();  // before the next block overwrites this one
    }
#ifdef COOPERATIVE
    store_d(matrix(kDk, batch, n), first, d);
    store_e(matrix(kDv, batch, n), first, e);
#else
    store_rows(matrix(kDk, batch, n), first, d, k_sum);
    store_rows(matrix(kDv, batch, n), first, e, v_sum);
#endif
  }
}
