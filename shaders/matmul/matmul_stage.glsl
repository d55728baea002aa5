// Brings a piece of A (or of B, its columns in the place of rows) from memory to shared memory, with zeros where it
// ends. matmul_shared.glsl and matmul_cooperative.glsl include this once for each, and define STAGE (the function's
// name), STAGE_MEMORY, STAGE_LOAD(memory, e), STAGE_AT(memory, e) (four elements, aligned), STAGE_TILE (the shared
// array, of type ELEMENT), STAGE_ROWS (rows of a tile) and STAGE_LAYOUT (0 strided, 1 contiguous along K, 2 contiguous
// along the rows).
//
// `at`: element number of the piece's first element. `rows`, `steps`: how much of the tile there is. `vectors`: fours
// that start at multiples of four lie aligned in memory.
void STAGE(STAGE_MEMORY memory, int at, int row_stride, int k_stride, int rows, int steps, bool vectors) {
  const int lane = int(gl_LocalInvocationIndex), lanes = int(gl_WorkGroupSize.x);
  if (vectors) {
    for (int q = lane; q < STAGE_ROWS * BK / 4; q += lanes) {
      const int row = STAGE_LAYOUT == 1 ? q / (BK / 4) : q % (STAGE_ROWS / 4) * 4;
      const int step = STAGE_LAYOUT == 1 ? q % (BK / 4) * 4 : q / (STAGE_ROWS / 4);
      const int from = at + row * row_stride + step * k_stride;
      VECTOR four = VECTOR(0);
      if (row < rows && step < steps) {
        // How many of the four there are.
        const int count = STAGE_LAYOUT == 1 ? steps - step : rows - row;
        if (count >= 4) {
          four = STAGE_AT(memory, from);
        } else {
          [[unroll]] for (int j = 0; j < 3; ++j) {
            if (j < count) four[j] = STAGE_LOAD(memory, from + j);
          }
        }
      }
      [[unroll]] for (int j = 0; j < 4; ++j) {
        const int to = STAGE_LAYOUT == 1 ? (step + j) * (STAGE_ROWS + PAD) + row : step * (STAGE_ROWS + PAD) + row + j;
        STAGE_TILE[to] = ELEMENT(four[j]);
      }
    }
  } else {
    for (int e = lane; e < STAGE_ROWS * BK; e += lanes) {
      const int row = STAGE_LAYOUT == 1 ? e / BK : e % STAGE_ROWS;
      const int step = STAGE_LAYOUT == 1 ? e % BK : e / STAGE_ROWS;
      VALUE value = VALUE(0);
      if (row < rows && step < steps) value = STAGE_LOAD(memory, at + row * row_stride + step * k_stride);
      STAGE_TILE[step * (STAGE_ROWS + PAD) + row] = ELEMENT(value);
    }
  }
}
#undef STAGE
#undef STAGE_MEMORY
#undef STAGE_LOAD
#undef STAGE_AT
#undef STAGE_TILE
#undef STAGE_ROWS
#undef STAGE_LAYOUT
