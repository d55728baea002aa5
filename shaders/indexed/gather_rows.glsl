// out[o, i, j] = x[o, idx[i], j] where rows along j are contiguous and have one index each: 2^parts lanes copy a row,
// 16 bytes at a time where both of its ends lie so. The includer defines BYTES, those of an element.
#extension GL_EXT_buffer_reference_uvec2 : require
#include "indexed.glsl"
#include "../memory/neighbours.glsl"

void main() {
  Memory x = a.first;
  Indices index = a.index;
  Memory result = a.last;
  const View xv = a.first_view, iv = a.index_view, rv = a.last_view;
  const uint indices = uint(a.indices), inner = uint(a.inner), rows = uint(a.points);
  const uint axis_extent = uint(a.axis_extent);
  const int axis_stride = a.axis_stride;
  const uint lanes = 1u << uint(a.parts);
  const uvec4 fill = uvec4(a.fill_low, a.fill_high, a.fill_low, a.fill_high);

  const uint lane = gl_LocalInvocationID.x & (lanes - 1u);
  const uint at_once = 64u >> uint(a.parts);
  uint n = gl_WorkGroupID.x * at_once + (gl_LocalInvocationID.x >> uint(a.parts));
  for (; n < rows; n += all_groups * at_once) {
    const int i = int(n % indices);
    const int o = int(n / indices);
    const int at = index.v[iv.bias + o * iv.outer + i * iv.indices];
    const bool there = uint(at) < axis_extent;
    const int from = xv.bias + o * xv.outer + (there ? at : 0) * axis_stride;
    const int to = rv.bias + o * rv.outer + i * rv.indices;
    const uvec2 source = element_at(uvec2(x), from, BYTES), target = element_at(uvec2(result), to, BYTES);
    uint done = 0u;
    if (((source.x | target.x) & 15u) == 0u) {
      const uint vectors = inner / (16u / BYTES);
      done = vectors * (16u / BYTES);
      if (there) {
        for (uint v = lane; v < vectors; v += lanes)
          FourWords(element_at(target, int(v), 16u)).v = FourWords(element_at(source, int(v), 16u)).v;
      } else {
        for (uint v = lane; v < vectors; v += lanes) FourWords(element_at(target, int(v), 16u)).v = fill;
      }
    }
    for (uint e = done + lane; e < inner; e += lanes) {
      if (there)
        STORE(result, to + int(e), LOAD(x, from + int(e)));
      else
        STORE(result, to + int(e), FILL);
    }
  }
}
