// Brings a piece of A or B from memory to registers (FETCH) and from there to shared memory (KEEP), in eights of 16-bit
// elements. matmul_cooperative.glsl includes this once for each, and defines FETCH and KEEP (the names), TILE (the
// shared array), LINES (of the tile) and EIGHTS (of a line).
//
// `at`: element number of the piece's first element; lines lie `line_stride` apart, the elements of one `stride`.
// `left`: how many lines there are, and elements along them. `whole`: eights are aligned, and all of one is there or
// nothing. What is not is read at the piece's begin and dropped by KEEP, so that nothing waits for a load on its way.
void FETCH(out uvec4 next[(LINES * EIGHTS + LANES - 1) / LANES], uvec2 memory, int at, int line_stride, int stride,
           ivec2 left, bool whole) {
  const int lane = int(gl_LocalInvocationIndex);
  if (whole) {
    [[unroll]] for (int i = 0; i < (LINES * EIGHTS + LANES - 1) / LANES; ++i) {
      const int line = (lane + i * LANES) / EIGHTS, first = (lane + i * LANES) % EIGHTS * 8;
      const bool there = line < left.x && first < left.y;
      next[i] = EightOfThem(address_of(memory, at + (there ? line * line_stride + first : 0), 2u)).v;
    }
  } else {
    [[unroll]] for (int i = 0; i < (LINES * EIGHTS + LANES - 1) / LANES; ++i) {
      const int line = (lane + i * LANES) / EIGHTS, first = (lane + i * LANES) % EIGHTS * 8;
      next[i] = gathered(memory, at + line * line_stride + first * stride, stride, line < left.x ? left.y - first : 0);
    }
  }
}

void KEEP(uvec4 next[(LINES * EIGHTS + LANES - 1) / LANES], ivec2 left) {
  const int lane = int(gl_LocalInvocationIndex);
  [[unroll]] for (int i = 0; i < (LINES * EIGHTS + LANES - 1) / LANES; ++i) {
    const int line = (lane + i * LANES) / EIGHTS, first = (lane + i * LANES) % EIGHTS * 8;
    const bool there = line < left.x && first < left.y;
    if (LINES * EIGHTS % LANES == 0 || line < LINES)
      TILE[line * (EIGHTS + 1) + first / 8] = there ? next[i] : uvec4(0);
  }
}
#undef FETCH
#undef KEEP
#undef TILE
#undef LINES
#undef EIGHTS
