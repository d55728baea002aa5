// What the cooperative matrices of attention share. Operands are f16, and sums are f32, which is what the hardware does.
// Each subgroup takes SUB_ROWS of the block's rows, whose outputs it keeps in matrices for as long as the block walks
// over what they are combined with. Blocks of scores go through shared memory, where the invocations of the workgroup
// share them as in the other ways. Further definitions:
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

const int COUNT_M = SUB_ROWS / MATRIX_M, COUNT_COLUMNS = BLOCK_COLUMNS / MATRIX_N;
const int COUNT_D = D_PAD / MATRIX_N, COUNT_E = E_PAD / MATRIX_N;
// Vulkan asks that a matrix in memory, and each of its rows, begins at a multiple of 16 bytes. So tiles are arrays of
// eights, rows of which are padded by one against conflicts of banks; what single invocations write by elements, weights
// and blocks, is behind an eight in a structure.
#define PITCH_OF(width) ((width) / 8 + 1)
const int P_PITCH = BLOCK_COLUMNS + 8;
struct AlignedWeights { uvec4 aligned; float16_t v[BLOCK_ROWS * P_PITCH]; };

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
    const int row_ = q_ / ((width) / 8), from_ = q_ % ((width) / 8) * 8;                                     \
    const int at_ = row_of(matrix_, (first) + row_) + from_ * COLUMN_STEP(matrix_);                          \
    const int there_ = row_ < (count) ? (length) - from_ : 0;                                                \
    uvec4 eight_;                                                                                            \
    if (there_ >= 8 && (matrix_).columns == kWideColumns) {                                                  \
      eight_ = sixteen_bytes((matrix_).address, at_);                                                        \
    } else {                                                                                                 \
      [[unroll]] for (int e_ = 0; e_ < 4; ++e_)                                                              \
        eight_[e_] = packFloat2x16(f16vec2(                                                                  \
            2 * e_ < there_ ? float16_t(LOADED((matrix_).address, at_ + 2 * e_ * COLUMN_STEP(matrix_)))      \
                            : float16_t(0.0),                                                                \
            2 * e_ + 1 < there_ ? float16_t(LOADED((matrix_).address, at_ + (2 * e_ + 1) * COLUMN_STEP(matrix_))) \
                                : float16_t(0.0)));                                                          \
    }                                                                                                        \
    tile[row_ * (pitch) + from_ / 8] = eight_;                                                               \
  }

// A block: the rows of one tile times those of another, over `width` columns.
#define MULTIPLY(block, own, own_pitch, other, other_pitch, width)                                             \
  {                                                                                                            \
    MATRIX_C score_[COUNT_M * COUNT_COLUMNS];                                                                  \
    [[unroll]] for (int i_ = 0; i_ < COUNT_M * COUNT_COLUMNS; ++i_) score_[i_] = MATRIX_C(0.0);                \
    COLUMN_LOOP for (int s_ = 0; s_ < width; s_ += MATRIX_K) {                                                  \
      MATRIX_A a_[COUNT_M];                                                                                    \
      [[unroll]] for (int i_ = 0; i_ < COUNT_M; ++i_)                                                          \
        coopMatLoadNV(a_[i_], own, uint((SUB_ROW + i_ * MATRIX_M) * own_pitch + s_ / 8), uint(own_pitch), false); \
      [[unroll]] for (int j_ = 0; j_ < COUNT_COLUMNS; ++j_) {                                                  \
        MATRIX_B b_;                                                                                           \
        coopMatLoadNV(b_, other, uint(j_ * MATRIX_N * other_pitch + s_ / 8), uint(other_pitch), true);         \
        [[unroll]] for (int i_ = 0; i_ < COUNT_M; ++i_)                                                        \
          score_[i_ * COUNT_COLUMNS + j_] = coopMatMulAddNV(a_[i_], b_, score_[i_ * COUNT_COLUMNS + j_]);      \
      }                                                                                                        \
    }                                                                                                          \
    [[unroll]] for (int i_ = 0; i_ < COUNT_M; ++i_)                                                            \
      [[unroll]] for (int j_ = 0; j_ < COUNT_COLUMNS; ++j_)                                                    \
        coopMatStoreNV(score_[i_ * COUNT_COLUMNS + j_], blocks,                                                \
                       uint(block + in_block(SUB_ROW + i_ * MATRIX_M, j_ * MATRIX_N)), uint(BLOCK_PITCH), false); \
  }

// Adds the weights (halves, P_PITCH a row) of a block times the rows of a tile to `sums`, COUNT_M times `count` matrices.
#define ACCUMULATE(sums, count, weights, other, other_pitch)                                                   \
  COLUMN_LOOP for (int s_ = 0; s_ < BLOCK_COLUMNS; s_ += MATRIX_K) {                                            \
    MATRIX_A a_[COUNT_M];                                                                                      \
    [[unroll]] for (int i_ = 0; i_ < COUNT_M; ++i_)                                                            \
      coopMatLoadNV(a_[i_], weights, uint((SUB_ROW + i_ * MATRIX_M) * P_PITCH + s_), uint(P_PITCH), false);    \
    [[unroll]] for (int j_ = 0; j_ < count; ++j_) {                                                            \
      MATRIX_B b_;                                                                                             \
      coopMatLoadNV(b_, other, uint(s_ * other_pitch + j_ * MATRIX_N / 8), uint(other_pitch), false);          \
      [[unroll]] for (int i_ = 0; i_ < COUNT_M; ++i_)                                                          \
        sums[i_ * count + j_] = coopMatMulAddNV(a_[i_], b_, sums[i_ * count + j_]);                            \
    }                                                                                                          \
  }

#define CLEAR(sums, count) \
  [[unroll]] for (int i_ = 0; i_ < COUNT_M * count; ++i_) sums[i_] = MATRIX_C(0.0);

// Stores `sums`, each element times factor(its row in the block), as the rows first, ... of z, which has `length`
// columns. A matrix's elements have no places that a shader knows, so each goes through the subgroup's own rows of the
// first block.
#define STORE_MATRICES(z, first, length, sums, count, factor)                                                  \
  [[unroll]] for (int i_ = 0; i_ < COUNT_M; ++i_) {                                                            \
    const int row_ = SUB_ROW + i_ * MATRIX_M;                                                                  \
    [[unroll]] for (int j_ = 0; j_ < count; ++j_) {                                                            \
      coopMatStoreNV(sums[i_ * count + j_], blocks, uint(in_block(row_, 0)), uint(BLOCK_PITCH), false);        \
      subgroupBarrier();                                                                                       \
      [[dont_unroll]] for (int e_ = int(gl_SubgroupInvocationID); e_ < MATRIX_M * MATRIX_N;                    \
                           e_ += int(gl_SubgroupSize)) {                                                       \
        const int r_ = row_ + e_ / MATRIX_N, column_ = j_ * MATRIX_N + e_ % MATRIX_N;                          \
        const float value_ = blocks[in_block(r_, e_ % MATRIX_N)] * factor(r_);                                 \
        if (first + r_ <= (z).last_row && column_ < length)                                                    \
          STORE(z, (z).at + (first + r_) * (z).rows + column_ * COLUMN_STEP(z), value_);                          \
      }                                                                                                        \
      subgroupBarrier();                                                                                       \
    }                                                                                                          \
  }
