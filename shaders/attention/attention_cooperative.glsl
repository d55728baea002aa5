// Products of the forward pass by cooperative matrices: q, k, v and the weights are f16, and sums are f32, which is
// what the hardware does. Each subgroup takes SUB_ROWS of the block's queries, whose outputs it keeps in matrices for
// as long as the block walks over the keys. Scores and weights go through shared memory, where the invocations of the
// workgroup share them as in the other ways. Further definitions:
//   MATRIX_M, MATRIX_N, MATRIX_K       one product of a subgroup (see matmul_cooperative.glsl)
//   SUBGROUPS, SUB_ROWS                BLOCK_ROWS is their product
//   D_PAD, E_PAD                       d and e, in whole matrices
#extension GL_NV_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

layout(constant_id = 0) const int type_m = MATRIX_M;
layout(constant_id = 1) const int type_n = MATRIX_N;
layout(constant_id = 2) const int type_k = MATRIX_K;
#define MATRIX_A fcoopmatNV<16, gl_ScopeSubgroup, type_m, type_k>
#define MATRIX_B fcoopmatNV<16, gl_ScopeSubgroup, type_k, type_n>
#define MATRIX_C fcoopmatNV<32, gl_ScopeSubgroup, type_m, type_n>

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Sixteen { uvec4 v; };

const int COUNT_M = SUB_ROWS / MATRIX_M, COUNT_KEYS = BLOCK_COLUMNS / MATRIX_N, COUNT_E = E_PAD / MATRIX_N;
const int PAD = 8;  // rows start at multiples of 16 bytes
const int Q_PITCH = D_PAD + PAD, P_PITCH = BLOCK_COLUMNS + PAD;
const int KV_PITCH = (D_PAD > E_PAD ? D_PAD : E_PAD) + PAD;
shared float16_t q_tile[BLOCK_ROWS * Q_PITCH];
shared float16_t kv_tile[BLOCK_COLUMNS * KV_PITCH];
shared float16_t p_tile[BLOCK_ROWS * P_PITCH];
shared float scale_of_row[BLOCK_ROWS];  // what the outputs are to be multiplied with
shared uint rescaled;                   // whether that is other than 1 anywhere

#define SUB_ROW (int(gl_SubgroupID) * SUB_ROWS)

uvec4 sixteen_bytes(uvec2 address, int element) {
  uint high, low, carry;  // bytes times an element number may need more than 32 bits
  umulExtended(uint(element), 2u, high, low);
  low = uaddCarry(address.x, low, carry);
  return Sixteen(uvec2(low, address.y + high + carry)).v;
}

// Rows first, ... of x as a tile of `rows` times `width`, with zeros from row `count` and column `length` on.
#define STAGE(tile, pitch, matrix_, first, rows, count, width, length)                                       \
  [[dont_unroll]] for (int q_ = int(gl_LocalInvocationID.x); q_ < (rows) * (width) / 8; q_ += LANES) {       \
    const int row_ = q_ / ((width) / 8), from_ = q_ % ((width) / 8) * 8, to_ = row_ * (pitch) + from_;       \
    const int at_ = row_of(matrix_, (first) + row_) + from_ * (matrix_).columns;                             \
    const int there_ = row_ < (count) ? (length) - from_ : 0;                                                \
    if (there_ >= 8 && (matrix_).wide) {                                                                     \
      const uvec4 bits_ = sixteen_bytes((matrix_).address, at_);                                             \
      [[unroll]] for (int h_ = 0; h_ < 4; ++h_) {                                                            \
        const f16vec2 two_ = unpackFloat2x16(bits_[h_]);                                                     \
        tile[to_ + 2 * h_] = two_.x;                                                                         \
        tile[to_ + 2 * h_ + 1] = two_.y;                                                                     \
      }                                                                                                      \
    } else {                                                                                                 \
      [[unroll]] for (int e_ = 0; e_ < 8; ++e_)                                                              \
        tile[to_ + e_] = e_ < there_ ? float16_t(LOADED((matrix_).address, at_ + e_ * (matrix_).columns)) : float16_t(0.0); \
    }                                                                                                        \
  }

// The block's queries, for all products of the task.
void begin_queries(Matrix q, int first, int d) {
  STAGE(q_tile, Q_PITCH, q, first, BLOCK_ROWS, BLOCK_ROWS, D_PAD, d)
}

// The block's queries times the rows y_row, ... of y.
void multiply_rows(int block, Matrix x, int x_row, Matrix y, int y_row, int length) {
  SYNC();  // others may still read what was staged before
  STAGE(kv_tile, KV_PITCH, y, y_row, BLOCK_COLUMNS, BLOCK_COLUMNS, D_PAD, length)
  SYNC();
  MATRIX_C score[COUNT_M * COUNT_KEYS];
  [[unroll]] for (int i = 0; i < COUNT_M * COUNT_KEYS; ++i) score[i] = MATRIX_C(0.0);
  [[unroll]] for (int s = 0; s < D_PAD; s += MATRIX_K) {
    MATRIX_A a[COUNT_M];
    [[unroll]] for (int i = 0; i < COUNT_M; ++i)
      coopMatLoadNV(a[i], q_tile, uint((SUB_ROW + i * MATRIX_M) * Q_PITCH + s), uint(Q_PITCH), false);
    [[unroll]] for (int j = 0; j < COUNT_KEYS; ++j) {
      MATRIX_B b;
      coopMatLoadNV(b, kv_tile, uint(j * MATRIX_N * KV_PITCH + s), uint(KV_PITCH), true);
      [[unroll]] for (int i = 0; i < COUNT_M; ++i)
        score[i * COUNT_KEYS + j] = coopMatMulAddNV(a[i], b, score[i * COUNT_KEYS + j]);
    }
  }
  [[unroll]] for (int i = 0; i < COUNT_M; ++i)
    [[unroll]] for (int j = 0; j < COUNT_KEYS; ++j)
      coopMatStoreNV(score[i * COUNT_KEYS + j], blocks, uint(in_block(SUB_ROW + i * MATRIX_M, j * MATRIX_N)),
                     uint(BLOCK_PITCH), false);
  SYNC();
}

// The outputs of the subgroup's rows.
MATRIX_C outputs[COUNT_M * COUNT_E];

void clear_outputs() {
  [[unroll]] for (int i = 0; i < COUNT_M * COUNT_E; ++i) outputs[i] = MATRIX_C(0.0);
}

// Multiplies the rows with scale_of_row, where that is needed. A matrix's elements have no places that a shader knows,
// so each goes through the subgroup's own rows of the block.
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
  [[unroll]] for (int s = 0; s < BLOCK_COLUMNS; s += MATRIX_K) {
    MATRIX_A a[COUNT_M];
    [[unroll]] for (int i = 0; i < COUNT_M; ++i)
      coopMatLoadNV(a[i], p_tile, uint((SUB_ROW + i * MATRIX_M) * P_PITCH + s), uint(P_PITCH), false);
    [[unroll]] for (int j = 0; j < COUNT_E; ++j) {
      MATRIX_B b;
      coopMatLoadNV(b, kv_tile, uint(s * KV_PITCH + j * MATRIX_N), uint(KV_PITCH), false);
      [[unroll]] for (int i = 0; i < COUNT_M; ++i)
        outputs[i * COUNT_E + j] = coopMatMulAddNV(a[i], b, outputs[i * COUNT_E + j]);
    }
  }
}

// Stores the rows, multiplied with scale_of_row, as the rows first, ... of a result with `length` columns.
void store_outputs(Matrix z, int first, int length) {
  const int lane = int(gl_SubgroupInvocationID), lanes = int(gl_SubgroupSize);
  [[unroll]] for (int i = 0; i < COUNT_M; ++i) {
    const int row = SUB_ROW + i * MATRIX_M;
    [[unroll]] for (int j = 0; j < COUNT_E; ++j) {
      coopMatStoreNV(outputs[i * COUNT_E + j], blocks, uint(in_block(row, 0)), uint(BLOCK_PITCH), false);
      subgroupBarrier();
      [[dont_unroll]] for (int e = lane; e < MATRIX_M * MATRIX_N; e += lanes) {
        const int r = row + e / MATRIX_N, column = j * MATRIX_N + e % MATRIX_N;
        const float value = blocks[in_block(r, e % MATRIX_N)] * scale_of_row[r];
        if (first + r <= z.last_row && column < length)
          STORE(z, z.at + (first + r) * z.rows + column * z.columns, value);
      }
      subgroupBarrier();
    }
  }
}
