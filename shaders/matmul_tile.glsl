// An invocation a tile of C. Neighbouring invocations have neighbouring columns.
#include "matmul.glsl"

void main() {
  Memory a = args.a, b = args.b, c = args.c;
  const int m = args.m, n = args.n, k = args.k;
  const int a_row = args.a_view.rows, a_k = args.a_view.columns;
  const int b_k = args.b_view.rows, b_column = args.b_view.columns;
  const uint tiles_m = uint(m + ROWS - 1) / ROWS;
  const uint tiles_n = uint(n + COLUMNS - 1) / COLUMNS;
  const uint tiles = tiles_m * tiles_n * uint(args.batches);
  for (uint t = gl_GlobalInvocationID.x; t < tiles; t += gl_NumWorkGroups.x * LANES) {
    const int column = int(t % tiles_n) * COLUMNS;
    const uint q = t / tiles_n;
    const int row = int(q % tiles_m) * ROWS;
    int a_at = args.a_view.bias, b_at = args.b_view.bias, c_at = args.c_view.bias;
    batch_offsets(q / tiles_m, a_at, b_at, c_at);

    // Past the edge the last row or column is computed again and not stored.
    int ap[ROWS], bp[COLUMNS];
    for (int i = 0; i < ROWS; ++i) ap[i] = a_at + min(row + i, m - 1) * a_row;
    for (int j = 0; j < COLUMNS; ++j) bp[j] = b_at + min(column + j, n - 1) * b_column;
    MEMORY sum[ROWS][COLUMNS];
    for (int i = 0; i < ROWS; ++i)
      for (int j = 0; j < COLUMNS; ++j) sum[i][j] = MEMORY(0);

    int l = 0;
#ifdef VECTOR
    if (a_k == 1 && b_k == 1) {
      // Four steps of K a load, at the alignment of one element.
      for (; l + 4 <= k; l += 4) {
        VECTOR bv[COLUMNS];
        for (int j = 0; j < COLUMNS; ++j) bv[j] = VECTOR_AT(b, bp[j] + l);
        for (int i = 0; i < ROWS; ++i) {
          const VECTOR av = VECTOR_AT(a, ap[i] + l);
          for (int j = 0; j < COLUMNS; ++j) {
            sum[i][j] = fma(av.x, bv[j].x, sum[i][j]);
            sum[i][j] = fma(av.y, bv[j].y, sum[i][j]);
            sum[i][j] = fma(av.z, bv[j].z, sum[i][j]);
            sum[i][j] = fma(av.w, bv[j].w, sum[i][j]);
          }
        }
      }
    }
#endif
    for (; l < k; ++l) {
      MEMORY av[ROWS], bv[COLUMNS];
      for (int i = 0; i < ROWS; ++i) av[i] = a.v[ap[i] + l * a_k];
      for (int j = 0; j < COLUMNS; ++j) bv[j] = b.v[bp[j] + l * b_k];
      for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < COLUMNS; ++j) sum[i][j] = MULTIPLY_ADD(av[i], bv[j], sum[i][j]);
    }

    for (int i = 0; i < ROWS; ++i)
      for (int j = 0; j < COLUMNS; ++j)
        if (row + i < m && column + j < n)
          c.v[c_at + (row + i) * args.c_view.rows + (column + j) * args.c_view.columns] = sum[i][j];
  }
}
