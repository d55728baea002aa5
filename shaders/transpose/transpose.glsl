// y[b, i, j] = x[b, j, i]: a copy between two layouts whose contiguous dimensions differ. A workgroup moves tiles of
// 32 x 32 elements through shared memory, so that neighbouring invocations read neighbours and write neighbours. The
// includer defines MEMORY, the element, and ALIGN, its bytes.
#extension GL_EXT_buffer_reference : require

const int SIZE = 32;
const int ROWS = 8;  // of a tile that a workgroup moves at once
layout(local_size_x = SIZE * ROWS) in;

layout(buffer_reference, std430, buffer_reference_align = ALIGN) buffer Memory { MEMORY v[]; };

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments {
  Memory from, to;
  int rows, columns;        // x is contiguous along its columns, y along the rows of x
  int row_stride;           // of x
  int column_stride;        // of y
  int batches, batch_rank;
  int batch_extents[6];
  int from_strides[6], to_strides[6];
};

// The address of the arguments, and how many workgroups there are along x in all: a dispatch may be handed over in
// parts, and gl_NumWorkGroups counts those of one part. gl_WorkGroupID counts on from part to part.
layout(push_constant) uniform Push { Arguments args; uint all_groups; };

// One column more, so that the elements of a column lie in different banks.
#ifdef SHARED
shared SHARED tile[SIZE * (SIZE + 1)];
#else
#define SHARED MEMORY
shared MEMORY tile[SIZE * (SIZE + 1)];
#endif

void main() {
  Memory from = args.from, to = args.to;
  const int rows = args.rows, columns = args.columns;
  const uint tiles_m = uint(rows + SIZE - 1) / uint(SIZE), tiles_n = uint(columns + SIZE - 1) / uint(SIZE);
  const uint tiles = tiles_m * tiles_n * uint(args.batches);
  const int along = int(gl_LocalInvocationIndex) % SIZE, across = int(gl_LocalInvocationIndex) / SIZE;
  for (uint t = gl_WorkGroupID.x; t < tiles; t += all_groups) {
    const int first_column = int(t % tiles_n) * SIZE;
    const int first_row = int(t / tiles_n % tiles_m) * SIZE;
    uint batch = t / tiles_n / tiles_m;
    int from_at = first_row * args.row_stride + first_column;
    int to_at = first_column * args.column_stride + first_row;
    for (int d = args.batch_rank - 1; d >= 0; --d) {
      const int c = int(batch % uint(args.batch_extents[d]));
      batch /= uint(args.batch_extents[d]);
      from_at += c * args.from_strides[d];
      to_at += c * args.to_strides[d];
    }
    for (int r = across; r < SIZE; r += ROWS) {
      if (first_row + r < rows && first_column + along < columns)
        tile[r * (SIZE + 1) + along] = SHARED(from.v[from_at + r * args.row_stride + along]);
    }
    barrier();
    for (int r = across; r < SIZE; r += ROWS) {
      if (first_column + r < columns && first_row + along < rows)
        to.v[to_at + r * args.column_stride + along] = MEMORY(tile[along * (SIZE + 1) + r]);
    }
    barrier();
  }
}
