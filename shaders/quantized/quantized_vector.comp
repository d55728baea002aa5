#version 460
#extension GL_GOOGLE_include_directive : require
#include "quantized.glsl"

// result[m, n] = sum_k x[m, k] w[n, k] for few rows of x: a workgroup computes ROWS elements of a column of the result,
// and its invocations share k, eight columns of the matrix at a time. Partial sums are added in a fixed order.
layout(local_size_x_id = 0) in;
layout(constant_id = 4) const int ROWS = 1;  // with INDEXED 1

shared float partial[ROWS * int(gl_WorkGroupSize.x)];

void main() {
  const int lane = int(gl_LocalInvocationIndex), lanes = int(gl_WorkGroupSize.x);
  const uint n_count = uint(a.n), bands = uint(a.m + ROWS - 1) / uint(ROWS);
  for (uint t = gl_WorkGroupID.x; t < bands * n_count; t += all_groups) {
    const uint n = t % n_count;
    const int first = int(t / n_count) * ROWS;
    const uint matrix = matrix_of(first);
    const bool there = !INDEXED || matrix < uint(a.matrices);
    float sum[ROWS];
    int row_at[ROWS];
    [[unroll]] for (int i = 0; i < ROWS; ++i) {
      sum[i] = 0.0;
      row_at[i] = a.x_bias + min(first + i, a.m - 1) * a.x_row;  // outside the last one is repeated
    }
    if (there) {
      const Row row = row_of(matrix, n);
      for (int k = lane * 8; k < a.k; k += lanes * 8) {
        float w[8];
        weights_at(row, uint(k), w);
        [[unroll]] for (int j = 0; j < 8; ++j) {
          if (k + j < a.k) {
            [[unroll]] for (int i = 0; i < ROWS; ++i)
              sum[i] = fma(w[j], a.x.v[row_at[i] + (k + j) * a.x_column], sum[i]);
          }
        }
      }
    }
    [[unroll]] for (int i = 0; i < ROWS; ++i) partial[i * lanes + lane] = sum[i];
    for (int left = lanes / 2; left > 0; left /= 2) {
      barrier();
      if (lane < left) {
        [[unroll]] for (int i = 0; i < ROWS; ++i) partial[i * lanes + lane] += partial[i * lanes + lane + left];
      }
    }
    barrier();
    if (lane == 0) {
      [[unroll]] for (int i = 0; i < ROWS; ++i)
        if (first + i < a.m)
          a.result.v[(first + i) * a.result_row + int(n)] = there ? partial[i * lanes] : NOT_A_NUMBER;
    }
    barrier();  // before the sums are overwritten
  }
}
