// Tensors made of the host's data.
#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/graph/data_leaf.h"
#include "engine/graph/lazy_tensor.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/memory_pressure.h"
#include "engine/tensor/error.h"

namespace caldera {

LazyTensor LazyTensor::from_bytes(const void* data, std::size_t bytes, DType dtype, const Shape& shape,
                                  Device device) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) {
    if (extent < 0)
      throw ShapeError(fmt::format("from_bytes: shape {} has a negative extent", shape.to_string()));
    if (__builtin_mul_overflow(count, extent, &count)) {
      throw ShapeError(
          fmt::format("from_bytes: shape {} has more elements than memory can hold", shape.to_string()));
    }
  }
  const std::size_t elements = bytes / size_of(dtype);
  if (elements * size_of(dtype) != bytes || elements != static_cast<std::size_t>(count)) {
    throw ShapeError(fmt::format("from_span: {} elements of {} do not fill shape {}, which has {}", elements,
                                 name(dtype), shape.to_string(), count));
  }
  StoragePtr storage = place_value(*open_device(device), data, bytes, "from_span", dtype, shape);
  return data_leaf(shape, dtype, device, {std::move(storage), 0, nullptr});
}

}  // namespace caldera
