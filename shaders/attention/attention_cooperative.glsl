// The forward pass by cooperative matrices (attention_matrices.glsl): weights are rounded to f16.
#include "attention_matrices.glsl"

const int Q_PITCH = PITCH_OF(D_PAD), KV_PITCH = PITCH_OF(D_PAD > E_PAD ? D_PAD : E_PAD);
shared uvec4 q_tile[BLOCK_ROWS * Q_PITCH];
shared uvec4 kv_tile[BLOCK_COLUMNS * KV_PITCH];
shared AlignedWeights p_tile;
shared float scale_of_row[BLOCK_ROWS];  // what the outputs are to be multiplied with
shared uint rescaled;                   // whether that is other than 1 anywhere

// The block's queries, for all products of the task.
void begin_queries(Matrix q, int first, int d) {
  STAGE(q_tile, Q_PITCH, q, first, BLOCK_ROWS, BLOCK_ROWS, D_PAD, d)
}

// The block's queries times the rows y_row, ... of y.
void multiply_rows(int block, Matrix x, int x_row, Matrix y, int y_row, int length) {
  SYNC();  // others may still read what was staged before
  STAGE(kv_tile, KV_PITCH, y, y_row, BLOCK_COLUMNS, BLOCK_COLUMNS, D_PAD, length)
  SYNC();
  MULTIPLY(block, q_tile, Q_PITCH, kv_tile, KV_PITCH, D_PAD)
  SYNC();
}

// The outputs of the subgroup's rows.
MATRIX_C outputs[COUNT_M * COUNT_E];

void clear_outputs() { CLEAR(outputs, COUNT_E) }

// Multiplies the rows with scale_of_row, where that is needed, by way of the subgroup's own rows of the block.
void scale_outputs() {
  if (rescaled == 0u) return;
  const int lane = int(gl_SubgroupInvocationID), lanes = int(gl_SubgroupSize);
  [[unroll]] for (int i = 0; i < COUNT_M; ++i) {
    const int row = SUB_ROW + i * MATRIX_M;
    [[unroll]] for (int j = 0; j < COUNT_E; ++j) {
      coopMatStoreNV(outputs[i * COUNT_E + j], blocks, uint(in_block(row, 0)), uint(BLOCK_PITCH), false);
      subgroupBarrier();
      [[dont_unroll]] for (int e = lane; e < MATRIX_M * MATRIX_N; e += lanes)
        blocks[in_block(row + e / MATRIX_N, e % MATRIX_N)] *= scale_of_row[row + e / MATRIX_N];
      subgroupBarrier();
      coopMatLoadNV(outputs[i * COUNT_E + j], blocks, uint(in_block(row, 0)), uint(BLOCK_PITCH), false);
      subgroupBarrier();
    }
  }
}

// Adds the weights of the block times the rows first, ... of y.
void accumulate_outputs(int count, Matrix y, int first, int length) {
  STAGE(kv_tile, KV_PITCH, y, first, BLOCK_COLUMNS, count, E_PAD, length)
  SYNC();
  ACCUMULATE(outputs, COUNT_E, p_tile.v, kv_tile, KV_PITCH)
}

// Stores the rows, multiplied with scale_of_row, as the rows first, ... of a result with `length` columns.
#define SCALE_OF(r) scale_of_row[r]
void store_outputs(Matrix z, int first, int length) {
  STORE_MATRICES(z, first, length, outputs, COUNT_E, SCALE_OF)
}
