// Products of attention for processors that act as GPUs: operands are read where they are.
#ifdef VECTOR_LOADS
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Four { vec4 v; };

vec4 four_at(uvec2 address, int element, int stride) {
  uint high, low, carry;  // 4 bytes times an element number may need more than 32 bits
  umulExtended(uint(element), 4u, high, low);
  low = uaddCarry(address.x, low, carry);
  return Four(uvec2(low, address.y + high + carry)).v;
}
#else
vec4 four_at(uvec2 address, int element, int stride) {
  return vec4(LOADED(address, element), LOADED(address, element + stride), LOADED(address, element + 2 * stride),
              LOADED(address, element + 3 * stride));
}
#endif


// The rows x_row, ... of x times the rows y_row, ... of y, over `length` columns: a block of scores. Each invocation
// writes its part.
void multiply_rows(int block, Matrix x, int x_row, Matrix y, int y_row, int length) {
  float sum[TILE_ROWS][TILE_COLUMNS];
  int xs[TILE_ROWS], ys[TILE_COLUMNS];
  [[unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
    xs[i] = row_of(x, x_row + LANE_ROW * TILE_ROWS + i);
    [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j) sum[i][j] = 0.0;
  }
  [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j) ys[j] = row_of(y, y_row + LANE_COLUMN + j * LANE_COLUMNS);
  int l = 0;
#ifndef SMALL_CODE
  [[dont_unroll]] for (; l + 4 <= length; l += 4) {
    vec4 yv[TILE_COLUMNS];
    [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j) yv[j] = four_at(y.address, ys[j] + l * y.columns, y.columns);
    [[unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
      const vec4 xv = four_at(x.address, xs[i] + l * x.columns, x.columns);
      [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j)
        [[unroll]] for (int s = 0; s < 4; ++s) sum[i][j] = fma(xv[s], yv[j][s], sum[i][j]);
    }
  }
#endif
  [[dont_unroll]] for (; l < length; ++l) {
    float yv[TILE_COLUMNS];
    [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j) yv[j] = LOADED(y.address, ys[j] + l * y.columns);
    [[unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
      const float xv = LOADED(x.address, xs[i] + l * x.columns);
      [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j) sum[i][j] = fma(xv, yv[j], sum[i][j]);
    }
  }
  [[unroll]] for (int i = 0; i < TILE_ROWS; ++i)
    [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j)
      blocks[block + in_block(LANE_ROW * TILE_ROWS + i, LANE_COLUMN + j * LANE_COLUMNS)] = sum[i][j];
}

// Adds the first `count` columns of a block times the rows first, ... of y, which has `length` columns.
void accumulate(int block, int count, Matrix y, int first, int length, inout float sum[TILE_ROWS][EACH]) {
  if (length == 0) return;
  int columns[EACH];
  [[unroll]] for (int j = 0; j < EACH; ++j)
    columns[j] = y.at + min(LANE_COLUMN + j * LANE_COLUMNS, length - 1) * y.columns;
  [[dont_unroll]] for (int c = 0; c < count; ++c) {
    float weight[TILE_ROWS];
    [[unroll]] for (int i = 0; i < TILE_ROWS; ++i) weight[i] = blocks[block + in_block(LANE_ROW * TILE_ROWS + i, c)];
    const int row = (first + c) * y.rows;
    [[unroll]] for (int j = 0; j < EACH; ++j) {
      const float value = LOADED(y.address, row + columns[j]);
      [[unroll]] for (int i = 0; i < TILE_ROWS; ++i) sum[i][j] = fma(weight[i], value, sum[i][j]);
    }
  }
}
