// Products of attention for GPUs: operands go through shared memory, 16 bytes a load. Further definitions:
//   WIDE                               elements in 16 bytes: 4 of f32, 8 of 16-bit types
//   WIDE_VALUES(bits, h)               numbers 4 h to 4 h + 3 of those in a uvec4
//   SLICE                              columns of two matrices that are staged at a time for products of their rows
//   PIECE                              rows of a matrix that are staged at a time to be added up, a multiple of four
//   FOURS                              fours of columns of such rows, in whole 16 bytes
//   STAGE                              fours that are staged at a time, at most
// An invocation's columns of an output are EACH / 4 fours that lie LANE_COLUMNS fours apart.
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Sixteen { uvec4 v; };

shared vec4 stage[STAGE];

const int SLICE_PITCH = SLICE / 4 + 1;  // spreads rows over the banks

uvec4 sixteen_bytes(uvec2 address, int element) {
  uint high, low, carry;  // bytes times an element number may need more than 32 bits
  umulExtended(uint(element), 16u / WIDE, high, low);
  low = uaddCarry(address.x, low, carry);
  return Sixteen(uvec2(low, address.y + high + carry)).v;
}

// The columns column, ... of the rows first, ... of x go to stage[to], stage[to + pitch], ...: `fours` fours each of
// `rows` rows, with zeros from the row `count` and the column `length` of x on.
void stage_rows(int to, int pitch, Matrix x, int first, int rows, int count, int column, int fours, int length) {
  const int wides = fours / (WIDE / 4);
  [[dont_unroll]] for (int q = int(gl_LocalInvocationID.x); q < rows * wides; q += LANES) {
    const int row = q / wides, place = q % wides;
    const int from = column + place * WIDE;
    vec4 values[WIDE / 4];
    [[unroll]] for (int h = 0; h < WIDE / 4; ++h) values[h] = vec4(0.0);
    if (row < count && from < length) {
      const int step = COLUMN_STEP(x), at = row_of(x, first + row) + from * step;
      if (x.columns == kWideColumns && from + WIDE <= length) {
        const uvec4 bits = sixteen_bytes(x.address, at);
        [[unroll]] for (int h = 0; h < WIDE / 4; ++h) values[h] = WIDE_VALUES(bits, h);
      } else {
        [[unroll]] for (int e = 0; e < WIDE; ++e) {
          if (from + e < length) values[e / 4][e % 4] = LOADED(x.address, at + e * step);
        }
      }
    }
    [[unroll]] for (int h = 0; h < WIDE / 4; ++h) stage[to + row * pitch + place * (WIDE / 4) + h] = values[h];
  }
}

// The rows x_row, ... of x times the rows y_row, ... of y, over `length` columns: a block of scores. Each invocation
// writes its part.
void multiply_rows(int block, Matrix x, int x_row, Matrix y, int y_row, int length) {
  float sum[TILE_ROWS][TILE_COLUMNS];
  [[unroll]] for (int i = 0; i < TILE_ROWS; ++i)
    [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j) sum[i][j] = 0.0;
  const int of_y = BLOCK_ROWS * SLICE_PITCH;
  [[dont_unroll]] for (int l = 0; l < length; l += SLICE) {
    SYNC();  // others may still read what was staged before
    stage_rows(0, SLICE_PITCH, x, x_row, BLOCK_ROWS, BLOCK_ROWS, l, SLICE / 4, length);
    stage_rows(of_y, SLICE_PITCH, y, y_row, BLOCK_COLUMNS, BLOCK_COLUMNS, l, SLICE / 4, length);
    SYNC();
    [[unroll]] for (int s = 0; s < SLICE / 4; ++s) {
      vec4 yv[TILE_COLUMNS];
      [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j)
        yv[j] = stage[of_y + (LANE_COLUMN + j * LANE_COLUMNS) * SLICE_PITCH + s];
      [[unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
        const vec4 xv = stage[(LANE_ROW * TILE_ROWS + i) * SLICE_PITCH + s];
        [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j)
          [[unroll]] for (int t = 0; t < 4; ++t) sum[i][j] = fma(xv[t], yv[j][t], sum[i][j]);
      }
    }
  }
  [[unroll]] for (int i = 0; i < TILE_ROWS; ++i)
    [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j)
      blocks[block + in_block(LANE_ROW * TILE_ROWS + i, LANE_COLUMN + j * LANE_COLUMNS)] = sum[i][j];
}

// Adds the first `count` columns of a block, all others of which are 0, times the rows first, ... of y, which has
// `length` columns.
void accumulate(int block, int count, Matrix y, int first, int length, inout float sum[TILE_ROWS][EACH]) {
  if (length == 0) return;
  [[dont_unroll]] for (int c = 0; c < count; c += PIECE) {
    SYNC();  // others may still read what was staged before
    stage_rows(0, FOURS, y, first + c, PIECE, count - c, 0, FOURS, length);
    SYNC();
    [[dont_unroll]] for (int k = 0; k < PIECE; k += 4) {
      [[unroll]] for (int s = 0; s < 4; ++s) {
        float weight[TILE_ROWS];
        [[unroll]] for (int i = 0; i < TILE_ROWS; ++i)
          weight[i] = blocks[block + in_block(LANE_ROW * TILE_ROWS + i, c + k + s)];
        [[unroll]] for (int j = 0; j < EACH / 4; ++j) {
          const vec4 values = stage[(k + s) * FOURS + min(LANE_COLUMN + j * LANE_COLUMNS, FOURS - 1)];
          [[unroll]] for (int i = 0; i < TILE_ROWS; ++i)
            [[unroll]] for (int t = 0; t < 4; ++t) sum[i][4 * j + t] = fma(weight[i], values[t], sum[i][4 * j + t]);
        }
      }
    }
  }
}

// The column of an output that an invocation keeps as its number `j`.
int column_of(int j) { return 4 * (LANE_COLUMN + j / 4 * LANE_COLUMNS) + j % 4; }
