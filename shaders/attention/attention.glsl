// What the three attention shaders share. They are put together at run time (engine/device/vulkan/steps/attention_step.cpp),
// which defines
//   OPERANDS                           how many there are, those of the kernels aside
//   LANE_ROWS, LANE_COLUMNS            a workgroup's invocations as a grid
//   TILE_ROWS, TILE_COLUMNS            what one of them computes of a block of scores
//   EACH                               columns that one of them keeps of an output, which has D or E of them
//   SYNC                               the barrier of a workgroup, which may be a single subgroup
//   WEIGHT(x)                          exp(x)
//   STAGED, or else                    if matrices go through shared memory: see attention_staged.glsl, which is for
//                                      GPUs, and asks for more; attention_direct.glsl reads them where they are stored
//   COOPERATIVE                        if they go through cooperative matrices: see attention_cooperative.glsl
//   SMALL_CODE                         if short code is worth more than unrolled loops
//   VECTOR_LOADS                       if rows of q, k, v and go are contiguous f32 and vectors are faster
//   LOADED(address, element)           an element of q, k, v or go, which may be of a 16-bit type
//   STORE(z, element, value)           stores an element of an output, which may be of a 16-bit type
//   CAUSAL                             if the score is a constant for keys beyond the query's place
//   IN_PARTS                           if batches, part_batches at a time, are parts of the keys one after the other
//   KERNEL_SLOTS, KERNEL_INTEGERS      members of Arguments that belong to the kernels
//   KERNEL_BEGIN, KERNEL_BATCH(batch)  what they need once, and in each batch
//   SCORE(raw, query, key)             the score
//   GRADIENT(d_score, raw, query, key) the gradient of the raw product
// and f_exp, infinity and quiet_nan of the function library. In the place of attention_family.glsl stands the text of
// the family (engine/device/vulkan/attention/families/) that computes the step.
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
  int batch[8];
};

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments {
  uvec2 memory[OPERANDS];  // addresses
  uvec2 fill, offset_scalar;  // of the causal mask
  KERNEL_SLOTS
  int batches, queries, keys, d, e;
  int batch_rank;
  int batch_extents[8];
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

#ifdef WIDE
// In the place of `columns`: these are neighbours, and WIDE of them from a column that is a multiple of WIDE on lie in 16
// bytes at a multiple of 16. (A bool of its own takes two registers of AMD's, of which there are too few.)
const int kWideColumns = 1 << 30;
#define COLUMN_STEP(x) ((x).columns == kWideColumns ? 1 : (x).columns)
#else
#define COLUMN_STEP(x) (x).columns
#endif

// Of highest, total and delta.
#define MEMORY(matrix) Floats((matrix).address)
// A number a row: what is kept of a vector is where it begins, so that fewer registers are held over a whole task.
#define OF_ROW(operand, at, row) Floats(args.memory[operand]).v[(at) + (row) * args.views[operand].rows]

Matrix matrix(int operand, uint batch, int rows) {
  Matrix x;
  x.address = args.memory[operand];
  x.at = element_at(operand, batch);
  x.rows = args.views[operand].rows;
  x.columns = args.views[operand].columns;
  x.last_row = rows - 1;
#ifdef WIDE
  if (x.columns == 1 && ((x.at | x.rows) & (WIDE - 1)) == 0 && (x.address.x & 15u) == 0u) x.columns = kWideColumns;
#endif
  return x;
}

int row_of(Matrix x, int row) { return x.at + min(row, x.last_row) * x.rows; }

#define LANE_ROW (int(gl_LocalInvocationID.x) / LANE_COLUMNS)
#define LANE_COLUMN (int(gl_LocalInvocationID.x) % LANE_COLUMNS)

// Blocks, one after the other. The odd pitch spreads a column over the banks; matrices start at 16 bytes.
#ifdef COOPERATIVE
#define BLOCK_PITCH (BLOCK_COLUMNS + 4)
#else
#define BLOCK_PITCH (BLOCK_COLUMNS + 1)
#endif
#define BLOCK_SIZE (BLOCK_ROWS * BLOCK_PITCH)
#ifdef COOPERATIVE
shared struct AlignedBlocks { uvec4 aligned; float v[BLOCKS * BLOCK_SIZE]; } block_memory;
#define blocks block_memory.v
#else
shared float blocks[BLOCKS * BLOCK_SIZE];
#endif

int in_block(int row, int column) { return row * BLOCK_PITCH + column; }

#include "attention_family.glsl"

#ifndef COOPERATIVE
#ifndef STAGED
// The column of an output that an invocation keeps as its number `j`.
int column_of(int j) { return LANE_COLUMN + j * LANE_COLUMNS; }
#endif

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
        const int column = column_of(j);
        if (column < length) STORE(z, z.at + row * z.rows + column * COLUMN_STEP(z), sum[0][j]);
      }
    }
    [[unroll]] for (int next = 1; next < TILE_ROWS; ++next)
      [[unroll]] for (int j = 0; j < EACH; ++j) sum[next - 1][j] = sum[next][j];
  }
}

#endif

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
float mask_weight(float highest) { return WEIGHT(uintBitsToFloat(args.fill.x) - highest); }

// P of a masked score in a row. Not 0 where the row's sum is not a number, as P is not one either.
#define MASKED_SHARE(highest, total, row) \
  (mask_weight(OF_ROW(kHighest, highest, row)) / OF_ROW(kTotal, total, row))
#endif
