// Brings a piece of A or B from memory to registers (FETCH) and from there to shared memory (KEEP), in eights of 16-bit
// elements, which PLACE finds once. matmul_cooperative.glsl includes this once for each, and defines PLACE, FETCH and
// KEEP (the names), TILE (the shared array), LINES (of the tile) and EIGHTS (of a line).
//
// `at`: element number of the piece's first element; lines lie `line_stride` apart, the elements of one `stride`.
// `left`: how many lines there are, and elements along them. `whole`: eights are aligned, and all of one is there or
// nothing. What is not is read at the piece's begin and dropped by KEEP, so that nothing waits for a load on its way.
#define TURNS ((LINES * EIGHTS + LANES - 1) / LANES)
// Of an invocation's eight number i. Unsigned, so that divisions are shifts.
#define LINE_OF(i) int((gl_LocalInvocationIndex + uint((i) * LANES)) / uint(EIGHTS))
#define FIRST_OF(i) int((gl_LocalInvocationIndex + uint((i) * LANES)) % uint(EIGHTS) * 8u)

// Where the invocation's eights begin, in elements from the piece's first.
void PLACE(out int offsets[TURNS], int line_stride, int stride) {
  [[unroll]] for (int i = 0; i < TURNS; ++i) offsets[i] = LINE_OF(i) * line_stride + FIRST_OF(i) * stride;
}

void FETCH(out uvec4 next[TURNS], uvec2 memory, int at, int offsets[TURNS], int stride, ivec2 left, bool whole) {
  if (whole) {
    [[unroll]] for (int i = 0; i < TURNS; ++i) {
      const bool there = LINE_OF(i) < left.x && FIRST_OF(i) < left.y;
      next[i] = EightOfThem(address_of(memory, at + (there ? offsets[i] : 0), 2u)).v;
    }
  } else {
    [[unroll]] for (int i = 0; i < TURNS; ++i)
      next[i] = gathered(memory, at + offsets[i], stride, LINE_OF(i) < left.x ? left.y - FIRST_OF(i) : 0);
  }
}

void KEEP(uvec4 next[TURNS], ivec2 left) {
  [[unroll]] for (int i = 0; i < TURNS; ++i) {
    const bool there = LINE_OF(i) < left.x && FIRST_OF(i) < left.y;
    if (LINES * EIGHTS % LANES == 0 || LINE_OF(i) < LINES)
      TILE[LINE_OF(i) * (EIGHTS + 1) + (FIRST_OF(i) >> 3)] = there ? next[i] : uvec4(0);
  }
}
#undef TURNS
#undef LINE_OF
#undef FIRST_OF
#undef PLACE
#undef FETCH
#undef KEEP
#undef TILE
#undef LINES
#undef EIGHTS
