#version 460
#extension GL_GOOGLE_include_directive : require
#include "quantized.glsl"

// result = x w^T, or with ACROSS x w: tiles of TILE x TILE, 4 x 4 elements an invocation, whose operands come through
// shared memory 32 terms of the sum at a time. Weights are decoded on their way there.
layout(local_size_x_id = 0) in;  // TILE / 4 squared
layout(constant_id = 4) const int TILE = 32;
layout(constant_id = 5) const bool ACROSS = false;
const int DEPTH = 32;

shared float left_part[DEPTH * (TILE + 1)];
shared float right_part[DEPTH * (TILE + 1)];

// Rows [first, first + count) of x, terms [term, term + DEPTH).
void load_left(int first, int count, int term, int terms) {
  for (int i = int(gl_LocalInvocationIndex); i < DEPTH * TILE; i += int(gl_WorkGroupSize.x)) {
    const int r = i / DEPTH, l = i % DEPTH;
    float value = 0.0;
    if (r < count && term + l < terms) value = a.x.v[a.x_bias + (first + r) * a.x_row + (term + l) * a.x_column];
    left_part[l * (TILE + 1) + r] = value;
  }
}

// Terms [term, term + DEPTH) of result columns [column, column + TILE).
void load_right(uint matrix, int column, int term) {
  const int row_first = ACROSS ? term : column, k_first = ACROSS ? column : term;
  const int row_count = ACROSS ? DEPTH : TILE, eights = (ACROSS ? TILE : DEPTH) / 8;
  for (int i = int(gl_LocalInvocationIndex); i < row_count * eights; i += int(gl_WorkGroupSize.x)) {
    const int r = i / eights, k = i % eights * 8;
    float w[8];
    [[unroll]] for (int j = 0; j < 8; ++j) w[j] = 0.0;
    if (row_first + r < a.n && k_first + k < a.k) weights_at(row_of(matrix, uint(row_first + r)), uint(k_first + k), w);
    [[unroll]] for (int j = 0; j < 8; ++j) {
      const int at = ACROSS ? r * (TILE + 1) + k + j : (k + j) * (TILE + 1) + r;
      right_part[at] = k_first + k + j < a.k ? w[j] : 0.0;
    }
  }
}

void main() {
  const int side = TILE / 4;
  const int lane = int(gl_LocalInvocationIndex), y = lane / side, x = lane % side;
  const int terms = ACROSS ? a.n : a.k, width = ACROSS ? a.k : a.n;
  const uint tiles_n = uint(width + TILE - 1) / uint(TILE), tiles_m = uint(a.m + TILE - 1) / uint(TILE);
  for (uint t = gl_WorkGroupID.x; t < tiles_m * tiles_n; t += all_groups) {
    const int column = int(t % tiles_n) * TILE, first = int(t / tiles_n) * TILE;
    const int end = min(first + TILE, a.m);
    int next = 0;
    for (int from = first; from < end; from = next) {  // rows of one matrix
      const uint matrix = matrix_of(from);
      for (next = INDEXED ? from + 1 : end; next < end && matrix_of(next) == matrix;) ++next;
      const bool there = !INDEXED || matrix < uint(a.matrices);
      float sum[4][4];
      [[unroll]] for (int i = 0; i < 4; ++i)
        [[unroll]] for (int j = 0; j < 4; ++j) sum[i][j] = there ? 0.0 : NOT_A_NUMBER;
      for (int term = 0; there && term < terms; term += DEPTH) {
        load_left(from, next - from, term, terms);
        load_right(matrix, column, term);
        barrier();
        for (int l = 0; l < DEPTH; ++l) {
          float left[4], right[4];
          [[unroll]] for (int i = 0; i < 4; ++i) {
            left[i] = left_part[l * (TILE + 1) + y + i * side];
            right[i] = right_part[l * (TILE + 1) + x + i * side];
          }
          [[unroll]] for (int i = 0; i < 4; ++i)
            [[unroll]] for (int j = 0; j < 4; ++j) sum[i][j] = fma(left[i], right[j], sum[i][j]);
        }
        barrier();
      }
      [[unroll]] for (int i = 0; i < 4; ++i) {
        const int r = from + y + i * side;
        [[unroll]] for (int j = 0; j < 4; ++j) {
          const int c = column + x + j * side;
          if (r < next && c < width) a.result.v[r * a.result_row + c] = sum[i][j];
        }
      }
    }
  }
}
