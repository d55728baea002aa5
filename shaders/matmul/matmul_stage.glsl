// Brings a piece of A (or of B, its columns in the place of rows) from memory to shared memory, with zeros where it
// ends: FETCH reads 16 bytes at once into registers, KEEP takes those to the tile. matmul_shared.glsl includes this
// once for each, and defines FETCH, KEEP (names of the functions), NEXT (of the registers), STAGE_MEMORY,
// STAGE_LOAD(memory, e), STAGE_RAW, STAGE_WIDE, STAGE_AT(memory, e), STAGE_FOUR(raw, f) (as A_RAW, A_WIDE, A_WIDE_AT
// and A_FOUR_OF of matmul.glsl), STAGE_TILE (the shared array), STAGE_ROWS (rows of a tile) and STAGE_LAYOUT (0 strided,
// 1 contiguous along K, 2 along the rows).
//
// `at`: element number of the piece's first element. `rows`, `steps`: how much of the tile there is. `whole`: what is
// read at once is aligned, and all of it is there or nothing. What is not is read at the piece's begin and dropped by
// KEEP, so that nothing waits for a load on its way. Where it is not so, KEEP reads element by element.
STAGE_RAW NEXT[(STAGE_ROWS * BK / STAGE_WIDE + int(gl_WorkGroupSize.x) - 1) / int(gl_WorkGroupSize.x)];

#define STAGE_PLACE                                                                                              \
  const int e = lane + i * lanes;                                                                                \
  const uint along = uint(STAGE_LAYOUT == 1 ? BK / STAGE_WIDE : STAGE_ROWS / STAGE_WIDE);                        \
  const int line = int(uint(e) / along), first = int(uint(e) % along) * STAGE_WIDE;                              \
  const int row = STAGE_LAYOUT == 1 ? line : first;                                                              \
  const int step = STAGE_LAYOUT == 1 ? first : line;                                                             \
  const bool there = row < rows && step < steps;

void FETCH(STAGE_MEMORY memory, int at, int row_stride, int k_stride, int rows, int steps, bool whole) {
  const int lane = int(gl_LocalInvocationIndex), lanes = int(gl_WorkGroupSize.x);
  if (whole) {
    [[unroll]] for (int i = 0; i < (STAGE_ROWS * BK / STAGE_WIDE + lanes - 1) / lanes; ++i) {
      STAGE_PLACE
      NEXT[i] = STAGE_AT(memory, at + (there ? row * row_stride + step * k_stride : 0));
    }
  }
}

void KEEP(STAGE_MEMORY memory, int at, int row_stride, int k_stride, int rows, int steps, bool whole) {
  const int lane = int(gl_LocalInvocationIndex), lanes = int(gl_WorkGroupSize.x);
  if (whole) {
    [[unroll]] for (int i = 0; i < (STAGE_ROWS * BK / STAGE_WIDE + lanes - 1) / lanes; ++i) {
      STAGE_PLACE
      if (e < STAGE_ROWS * BK / STAGE_WIDE) {
        [[unroll]] for (int f = 0; f < STAGE_WIDE / 4; ++f) {
          const VECTOR four = there ? STAGE_FOUR(NEXT[i], f) : VECTOR(0);
          [[unroll]] for (int j = 0; j < 4; ++j) {
            const int s = STAGE_LAYOUT == 1 ? step + 4 * f + j : step;
            const int r = STAGE_LAYOUT == 1 ? row : row + 4 * f + j;
            STAGE_TILE[s * (STAGE_ROWS + PAD) + r] = four[j];
          }
        }
      }
    }
  } else {
    for (int e = lane; e < STAGE_ROWS * BK; e += lanes) {
      const int row = STAGE_LAYOUT == 1 ? e / BK : e % STAGE_ROWS;
      const int step = STAGE_LAYOUT == 1 ? e % BK : e / STAGE_ROWS;
      VALUE value = VALUE(0);
      if (row < rows && step < steps) value = STAGE_LOAD(memory, at + row * row_stride + step * k_stride);
      STAGE_TILE[step * (STAGE_ROWS + PAD) + row] = value;
    }
  }
}
#undef FETCH
#undef KEEP
#undef NEXT
#undef STAGE_MEMORY
#undef STAGE_LOAD
#undef STAGE_AT
#undef STAGE_RAW
#undef STAGE_WIDE
#undef STAGE_FOUR
#undef STAGE_PLACE
#undef STAGE_TILE
#undef STAGE_ROWS
#undef STAGE_LAYOUT
