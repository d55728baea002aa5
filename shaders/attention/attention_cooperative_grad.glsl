// The gradients by cooperative matrices (attention_matrices.glsl). The block's own rows are those of the queries or those
// of the keys, the others those that it walks over. Gradients of scores may be smaller or larger than f16 holds: they
// are multiplied with a power of two that brings the largest of the task to some 2^10, and the sums follow it.
#include "attention_matrices.glsl"

const int D_PITCH = PITCH_OF(D_PAD), E_PITCH = PITCH_OF(E_PAD);
const float WEIGHT_FACTOR = 1024.0;  // P is at most 1
shared uvec4 own_d[BLOCK_ROWS * D_PITCH];       // q or k
shared uvec4 own_e[BLOCK_ROWS * E_PITCH];       // go or v
shared uvec4 other_d[BLOCK_COLUMNS * D_PITCH];  // k or q
shared uvec4 other_e[BLOCK_COLUMNS * E_PITCH];  // v or go
shared AlignedWeights r_tile;                   // gradients of raw scores
#ifdef OF_KEYS
shared AlignedWeights p_tile;
MATRIX_C e_sums[COUNT_M * COUNT_E];
#endif
MATRIX_C d_sums[COUNT_M * COUNT_D];
shared uint largest;  // of the gradients of raw scores, as bits
float r_factor;       // that they are multiplied with

void begin_rows(Matrix d_rows, Matrix e_rows, int first, int d, int e) {
  if (gl_LocalInvocationID.x == 0u) largest = 0u;
  r_factor = 1.0;
  STAGE(own_d, D_PITCH, d_rows, first, BLOCK_ROWS, BLOCK_ROWS, D_PAD, d)
  STAGE(own_e, E_PITCH, e_rows, first, BLOCK_ROWS, BLOCK_ROWS, E_PAD, e)
  CLEAR(d_sums, COUNT_D)
#ifdef OF_KEYS
  CLEAR(e_sums, COUNT_E)
#endif
}

// The two blocks: raw scores, and gradients of weights.
void multiply_both(Matrix d_rows, Matrix e_rows, int first, int count, int d, int e) {
  SYNC();  // others may still read what was staged before
  STAGE(other_d, D_PITCH, d_rows, first, BLOCK_COLUMNS, count, D_PAD, d)
  STAGE(other_e, E_PITCH, e_rows, first, BLOCK_COLUMNS, count, E_PAD, e)
  SYNC();
  MULTIPLY(0, own_d, D_PITCH, other_d, D_PITCH, D_PAD)
  MULTIPLY(BLOCK_SIZE, own_e, E_PITCH, other_e, E_PITCH, E_PAD)
  SYNC();
}

// Adds up a pair of blocks that hold gradients of raw scores and weights, each invocation's own elements written.
void accumulate_both() {
  float most = 0.0;
  [[dont_unroll]] for (int i = 0; i < TILE_ROWS; ++i)
    [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j) {
      const float size = abs(blocks[in_block(LANE_ROW * TILE_ROWS + i, LANE_COLUMN + j * LANE_COLUMNS)]);
      if (size < infinity()) most = max(most, size);
    }
  atomicMax(largest, floatBitsToUint(most));
  SYNC();
  const float factor = uintBitsToFloat(clamp(264u - min(largest >> 23, 254u), 1u, 254u) << 23);
  if (factor != r_factor) {
    const float ratio = factor / r_factor;
    [[unroll]] for (int i = 0; i < COUNT_M * COUNT_D; ++i) d_sums[i] = d_sums[i] * ratio;
    r_factor = factor;
  }
  [[dont_unroll]] for (int i = 0; i < TILE_ROWS; ++i)
    [[unroll]] for (int j = 0; j < TILE_COLUMNS; ++j) {
      const int r = LANE_ROW * TILE_ROWS + i, column = LANE_COLUMN + j * LANE_COLUMNS;
      r_tile.v[r * P_PITCH + column] = float16_t(blocks[in_block(r, column)] * factor);
#ifdef OF_KEYS
      p_tile.v[r * P_PITCH + column] = float16_t(blocks[BLOCK_SIZE + in_block(r, column)] * WEIGHT_FACTOR);
#endif
    }
  SYNC();
  ACCUMULATE(d_sums, COUNT_D, r_tile.v, other_d, D_PITCH)
#ifdef OF_KEYS
  ACCUMULATE(e_sums, COUNT_E, p_tile.v, other_e, E_PITCH)
#endif
}

#define OF_D(r) (1.0 / r_factor)
#define OF_E(r) (1.0 / WEIGHT_FACTOR)

void store_d(Matrix z, int first, int d) {
  SYNC();  // others may still read the blocks
  STORE_MATRICES(z, first, d, d_sums, COUNT_D, OF_D)
}

#ifdef OF_KEYS
void store_e(Matrix z, int first, int e) {
  STORE_MATRICES(z, first, e, e_sums, COUNT_E, OF_E)
}
#endif
