#include "ops/quantized/quantized_tensor.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "engine/device/cpu_interleaved.h"
#include "engine/graph/data_leaf.h"
#include "engine/graph/transfer.h"
#include "ops/core/node_builder.h"

namespace caldera {

std::int64_t QuantizedTensor::bytes() const {
  std::int64_t bytes = 0;
  for (const LazyTensor& part : parts)
    bytes += part.shape().numel() * static_cast<std::int64_t>(size_of(part.dtype()));
  return bytes;
}

namespace {

/// The layout whose groups, where they are larger than the matrix, are as large as it: the same scales.
QuantizedLayout fitted(QuantizedLayout layout, std::int64_t rows, std::int64_t columns) {
  if (layout.format != QuantizedFormat::fp8_e4m3) return layout;
  layout.group = std::min(layout.group, std::max<std::int64_t>(columns, 1));
  layout.group_rows = std::min(layout.group_rows, std::max<std::int64_t>(rows, 1));
  return layout;
}

}  // namespace

QuantizedTensor quantized_tensor(const QuantizedLayout& layout, const Shape& shape,
                                 std::vector<LazyTensor> parts) {
  const std::string_view format = name(layout.format);
  if (shape.rank() != 2 && shape.rank() != 3)
    throw ShapeError(fmt::format("quantized_tensor: {} is not (rows, columns) or (matrices, rows, columns)",
                                 shape.to_string()));
  ops::check_extents("quantized_tensor", shape, DType::f32);
  QuantizedTensor q{layout, shape, std::move(parts)};
  q.layout = fitted(layout, q.rows(), q.columns());
  if (const std::string_view why = why_no_layout(q.layout, q.rows(), q.columns()); !why.empty())
    throw ShapeError(fmt::format("quantized_tensor: {} of shape {}: {}", format, shape.to_string(), why));
  if (const std::string_view why = why_not_interleaved(q.layout, q.rows()); !why.empty())
    throw ShapeError(fmt::format("quantized_tensor: {} of shape {}: {}", format, shape.to_string(), why));
  const std::vector<QuantizedPart> wanted = parts_of(q.layout, q.rows(), q.columns());
  if (q.parts.size() != wanted.size())
    throw ShapeError(
        fmt::format("quantized_tensor: {} has {} parts, got {}", format, wanted.size(), q.parts.size()));
  if (layout.interleaved && q.parts[0].device().kind != DeviceKind::cpu)
    throw DeviceError(fmt::format("quantized_tensor: interleaved rows of {} are of the CPU alone", format));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const QuantizedPart& want = wanted[i];
    const LazyTensor& got = q.parts[i];
    Shape extents{want.rows, want.columns};
    if (shape.rank() == 3) extents = Shape{shape[0], want.rows, want.columns};
    if (got.shape() != extents)
      throw ShapeError(fmt::format("quantized_tensor: the {} of {} {} are {}, got {}", want.name, format,
                                   shape.to_string(), extents.to_string(), got.shape().to_string()));
    const bool fits = got.dtype() == want.dtype || (want.is_any_float && is_half(got.dtype())) ||
                      (want.dtype == DType::u32 && got.dtype() == DType::i32);
    if (!fits)
      throw DTypeError(fmt::format("quantized_tensor: the {} of {} are {}{}, got {}", want.name, format,
                                   name(want.dtype), want.is_any_float ? ", float16 or bfloat16" : "",
                                   name(got.dtype())));
    if (got.device() != q.parts[0].device())
      throw DeviceError(fmt::format("quantized_tensor: the {} of {} lie on {}, its {} on {}", want.name,
                                    format, got.device().to_string(), wanted[0].name,
                                    q.parts[0].device().to_string()));
  }
  return q;
}

QuantizedTensor to(const QuantizedTensor& q, Device device) {
  QuantizedTensor moved = q.defined() && q.device() == device ? q : separated(q);
  for (LazyTensor& part : moved.parts) part = to(part, device);
  return moved;
}

namespace {

using MoveRows = void (*)(QuantizedFormat format, const std::byte* from, std::int64_t rows,
                          std::int64_t columns, std::byte* to);

/// The blocks in another order.
QuantizedTensor reordered(const QuantizedTensor& q, MoveRows move) {
  QuantizedTensor out = q;
  out.layout.interleaved = !q.layout.interleaved;
  const std::vector<std::uint8_t> from = q.parts[0].to_vector<std::uint8_t>();
  std::vector<std::uint8_t> to(from.size());
  move(q.layout.format, reinterpret_cast<const std::byte*>(from.data()), q.matrices() * q.rows(), q.columns(),
       reinterpret_cast<std::byte*>(to.data()));
  out.parts[0] = host_leaf(std::span<const std::uint8_t>(to), q.parts[0].shape(), q.device());
  return out;
}

}  // namespace

QuantizedTensor interleaved(const QuantizedTensor& q) {
  const bool gains =
      q.defined() && q.device().kind == DeviceKind::cpu && cpu_prefers_interleaved(q.layout, q.rows());
  return gains ? reordered(q, cpu_interleave) : q;
}

QuantizedTensor separated(const QuantizedTensor& q) {
  return q.defined() && q.layout.interleaved ? reordered(q, cpu_separate) : q;
}

}  // namespace caldera
