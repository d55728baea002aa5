// out[o, idx[i], j] = combined(out[o, idx[i], j], u[o, i, j]). One invocation a column (o, j) and part of the axis takes
// `count` indices from `begin` on, in order: no atomics, and the same result every time. `apart`: no index comes twice in
// a column, and a part is of `count` indices instead. The includer also defines VALUE, the type to compute
// in, and IS_NAN, which tells by bits: drivers and optimisers may assume that there is no NaN.
#include "indexed.glsl"
#include "scatter_ways.glsl"

layout(constant_id = 0) const int kHow = 0;  // Scatter of engine/graph/op.h

const int STEP = 4;

VALUE combined(VALUE old, VALUE update) {
  if (kHow == ADD) return old + update;
  if (kHow == MULTIPLY) return old * update;
  if (kHow == SET || IS_NAN(update)) return update;
  if (IS_NAN(old)) return old;
  return kHow == MAXIMUM ? max(old, update) : min(old, update);
}

void main() {
  Memory update = a.first;
  Indices index = a.index;
  Memory result = a.last;
  const View uv = a.first_view, iv = a.index_view, rv = a.last_view;
  const int indices = a.indices;
  const uint inner = uint(a.inner), points = uint(a.points);
  const uint axis_extent = uint(a.axis_extent), part_extent = uint(a.part_extent);
  const int axis_stride = a.axis_stride;
  const bool apart = a.apart != 0;
  const uint work = points * uint(a.parts);
  const uint stride = all_groups * 64u;
  for (uint w = gl_GlobalInvocationID.x; w < work; w += stride) {
    const uint n = w % points;
    const uint part = w / points;
    const uint lowest = apart ? 0u : part * part_extent;
    const uint end = apart ? axis_extent : min(lowest + part_extent, axis_extent);
    const int first = apart ? int(part) * a.count : a.begin, last = min(first + a.count, indices);
    const int j = int(n % inner);
    const int o = int(n / inner);
    const int from = uv.bias + o * uv.outer + j * uv.inner;
    const int by = iv.bias + o * iv.outer + j * iv.inner;
    const int to = rv.bias + o * rv.outer + j * rv.inner;
    for (int i = first; i < last; i += STEP) {
      // Loaded ahead of the first store: what they are is not waited for one by one.
      int at[STEP];
      [[unroll]] for (int s = 0; s < STEP; ++s) at[s] = index.v[by + min(i + s, last - 1) * iv.indices];
      [[unroll]] for (int s = 0; s < STEP; ++s) {
        if (i + s < last && uint(at[s]) >= lowest && uint(at[s]) < end) {
          const int e = to + at[s] * axis_stride;
          STORE(result, e,
                ELEMENT(combined(VALUE(LOAD(result, e)), VALUE(LOAD(update, from + (i + s) * uv.indices)))));
        }
      }
    }
  }
}
