// out[o, i, j] = x[o, idx[i], j]; what is outside of the axis is FILL.
#include "indexed.glsl"

void main() {
  Memory x = a.first;
  Indices index = a.index;
  Memory result = a.last;
  const View xv = a.first_view, iv = a.index_view, rv = a.last_view;
  const uint indices = uint(a.indices), inner = uint(a.inner), points = uint(a.points);
  const uint axis_extent = uint(a.axis_extent);
  const int axis_stride = a.axis_stride;
  const uint stride = all_groups * 64u;
  for (uint n = gl_GlobalInvocationID.x; n < points; n += stride) {
    const int j = int(n % inner);
    const uint q = n / inner;
    const int i = int(q % indices);
    const int o = int(q / indices);
    const int at = index.v[iv.bias + o * iv.outer + i * iv.indices + j * iv.inner];
    const int to = rv.bias + o * rv.outer + i * rv.indices + j * rv.inner;
    if (uint(at) < axis_extent)
      STORE(result, to, LOAD(x, xv.bias + o * xv.outer + at * axis_stride + j * xv.inner));
    else
      STORE(result, to, FILL);
  }
}
