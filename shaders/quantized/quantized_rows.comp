#version 460
#extension GL_GOOGLE_include_directive : require
#include "quantized.glsl"

// Rows as floats: m x n of them, or the m that `which` names. An invocation decodes eight columns.
layout(local_size_x = 64) in;

void main() {
  const uint columns = uint(a.k), eights = (columns + 7u) / 8u;
  const uint all = uint(a.matrices) * uint(a.rows);
  const uint count = INDEXED ? uint(a.m) : all;
  const uint stride = all_groups * 64u;
  for (uint i = gl_GlobalInvocationID.x; i < count * eights; i += stride) {
    const uint out_row = i / eights, k = i % eights * 8u;
    const uint n = INDEXED ? uint(a.which.v[a.which_bias + int(out_row) * a.which_stride]) : out_row;
    float w[8];
    [[unroll]] for (int j = 0; j < 8; ++j) w[j] = NOT_A_NUMBER;
    if (n < all) {
      const uint matrix = n / uint(a.rows);
      weights_at(row_of(matrix, n - matrix * uint(a.rows)), k, w);
    }
    const uint to = out_row * uint(a.result_row) + k;
    [[unroll]] for (uint j = 0u; j < 8u; ++j)
      if (k + j < columns) a.result.v[to + j] = w[j];
  }
}
