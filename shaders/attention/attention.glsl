// What the three attention shaders share. They are put together at run time (engine/device/vulkan/steps/attention_step.cpp),
// which defines
//   OPERANDS                           how many there are, those of the kernels aside
//   LANE_ROWS, LANE_COLUMNS            a workgroup's invocations as a grid
//   TILE_ROWS, TILE_COLUMNS            what one of them computes of a block of scores
//   EACH                               columns that one of them keeps of an output, which has D or E of them
//   SMALL_CODE                         if short code is worth more than unrolled loops
//   SYNC                               the barrier of a workgroup, which may be a single subgroup
//   VECTOR_LOADS                       if rows of q, k, v and go are contiguous f32 and vectors are faster
//   LOADED(address, element)           an element of q, k, v or go, which may be of a 16-bit type
//   STORE(z, element, value)           stores an element of an output, which may be of a 16-bit type
//   CAUSAL                             if the score is a constant for keys beyond the query's place
//   IN_PARTS                           if batches, part_batches at a time, are parts of the keys one after the other
//   KERNEL_SLOTS, KERNEL_INTEGERS      members of Arguments that belong to the kernels
//   KERNEL_BEGIN, KERNEL_BATCH(batch)  what they need once, and in each batch
//   SCORE(raw, query, key)             the score
//   GRADIENT(d_score, raw, query, key) the gradient of the raw product
// and f_exp, infinity and quiet_nan of the function library.
//
// A workgroup takes a block of BLOCK_ROWS rows of an output and walks over all that these rows are combined with, in
// blocks of BLOCK_COLUMNS: queries against keys, or keys against queries. Scores exist for one such block at a time. An
// invocation's rows follow one another; its columns lie LANE_COLUMNS apart, so that neighbours read neighbours.
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require

#define LANES (LANE_ROWS * LANE_COLUMNS)
#define BLOCK_ROWS (LANE_ROWS * TILE_ROWS)
#define BLOCK_COLUMNS (LANE_COLUMNS * TILE_COLUMNS)

#ifdef SMALL_CODE
#define COLUMN_LOOP [[dont_unroll]]
#else
#define COLUMN_LOOP [[unroll]]
#endif

layout(local_size_x = LANES) in;

// Element number = bias + row * rows + column * columns + sum(batch coordinate * batch[d]). The address was lowered
// by bias elements, so that no element number is negative where a stride is.
struct View {
  int bias;
  int rows, columns;
  int batch[4];
};

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments {
  uvec2 memory[OPERANDS];  // addresses
  uvec2 fill, offset_scalar;  // of the causal mask
  KERNEL_SLOTS
  int batches, queries, keys, d, e;
  int batch_rank;
  int batch_extents[4];
  int offset;
  int query_step;    // 0: all queries see what query 0 sees
  int part_batches;  // batches of a part of the keys
  View views[OPERANDS];
  KERNEL_INTEGERS
};

// The address of the arguments, and how many workgroups there are along x in all: a dispatch may be handed over in
// parts, and gl_NumWorkGroups counts those of one part. gl_WorkGroupID counts on from part to part.
layout(push_constant) uniform Push { Arguments args; uint all_groups; };

// Element number of row 0 and column 0 of a batch in a view.
int element_at(int view, uint batch) {
  int at = args.views[view].bias;
  for (int d = args.batch_rank - 1; d >= 0; --d) {
    const uint extent = uint(args.batch_extents[d]);
    at += int(batch % extent) * args.views[view].batch[d];
    batch /= extent;
  }
  return at;
}

// A matrix of one batch. Rows beyond the last are the last one over again. The address is a number, because glslang
// leaves references in variables of structures without the decoration that SPIR-V asks for.
struct Matrix {
  uvec2 address;
  int at, rows, columns, last_row;
};

// Of highest, total and delta.
#define MEMORY(matrix) Floats((matrix).address)

Matrix matrix(int operand, uint batch, int rows) {
  return Matrix(args.memory[operand], element_at(operand, batch), args.views[operand].rows,
                args.views[operand].columns, rows - 1);
}

int row_of(Matrix x, int row) { return x.at + min(row, x.last_row) * x.rows; }

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

#define LANE_ROW (int(gl_LocalInvocationID.x) / LANE_COLUMNS)
#define LANE_COLUMN (int(gl_LocalInvocationID.x) % LANE_COLUMNS)

// Blocks, one after the other. The odd pitch spreads a column over the banks.
#define BLOCK_SIZE (BLOCK_ROWS * (BLOCK_COLUMNS + 1))
shared float blocks[BLOCKS * BLOCK_SIZE];

int in_block(int row, int column) { return row * (BLOCK_COLUMNS + 1) + column; }

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

void clear(out float sum[TILE_ROWS][EACH]) {
  [[unroll]] for (int i = 0; i < TILE_ROWS; ++i)
    [[unroll]] for (int j = 0; j < EACH; ++j) sum[i][j] = 0.0;
}

// Stores the invocation's rows first, ... of a result with `length` columns. One copy of the
// code for each column: the rows come to the front in turn.
void store_rows(Matrix z, int first, int length, float sum[TILE_ROWS][EACH]) {
  [[dont_unroll]] for (int i = 0; i < TILE_ROWS; ++i) {
    const int row = first + LANE_ROW * TILE_ROWS + i;
    if (row <= z.last_row) {
      [[unroll]] for (int j = 0; j < EACH; ++j) {
        const int column = LANE_COLUMN + j * LANE_COLUMNS;
        if (column < length) STORE(z, z.at + row * z.rows + column * z.columns, sum[0][j]);
      }
    }
    [[unroll]] for (int next = 1; next < TILE_ROWS; ++next)
      [[unroll]] for (int j = 0; j < EACH; ++j) sum[next - 1][j] = sum[next][j];
  }
}

#ifdef CAUSAL
int causal_offset() { return args.offset + int(args.offset_scalar.x); }

// The last key that a query sees, counted from the first one of the batch's part of the keys.
int last_seen(int query, uint batch) {
#ifdef IN_PARTS
  return query * args.query_step + causal_offset() - int(batch) / args.part_batches * args.keys;
#else
  return query * args.query_step + causal_offset();
#endif
}

// What a masked score adds to the sum of a row with this maximum.
float mask_weight(float highest) { return f_exp(uintBitsToFloat(args.fill.x) - highest); }

// P of a masked score in a row. Not 0 where the row's sum is not a number, as P is not one either.
float masked_share(Matrix highest, Matrix total, int row) {
  return mask_weight(MEMORY(highest).v[row_of(highest, row)]) / MEMORY(total).v[row_of(total, row)];
}
#endif
