#include "training/io/weights/plain_weight.h"

#include <fmt/format.h>

#include <cstring>

#include "engine/device/backend.h"
#include "engine/runtime/runtime.h"
#include "engine/tensor/dispatch.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"

namespace caldera::detail {
namespace {

/// A leaf of another dtype, evaluated: what it was made of is let go.
LazyTensor in(const LazyTensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  LazyTensor converted = stop_gradient(astype(x, dtype));
  converted.eval();
  return converted;
}

std::vector<float> transposed(const std::vector<float>& x, const Shape& shape) {
  const auto rows = static_cast<std::size_t>(shape[0]);
  const auto columns = static_cast<std::size_t>(shape[1]);
  std::vector<float> out(x.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) out[r * columns + c] = x[c * rows + r];
  return out;
}

}  // namespace

std::vector<float> to_floats(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> out(bytes.size() / size_of(dtype));
  dispatch<caldera::is_floating>(dtype, [&]<class T>() {
    for (std::size_t i = 0; i < out.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));  // bytes may be unaligned
      out[i] = static_cast<float>(to_number(value));
    }
  });
  return out;
}

LazyTensor PlainWeight::read(DType dtype, Device device) const {
  const bool as_it_is = change_.added == 0 && !change_.transposed;
  if (as_it_is && backend(device).supports(dtype_) && is_floating()) {
    const LazyTensor stored = bytes_.with_bytes([&](std::span<const std::byte> bytes) {
      return LazyTensor::from_bytes(bytes.data(), bytes.size(), dtype_, shape(), device);
    });
    return in(stored, dtype);
  }
  return in(LazyTensor::from_vector(values(), shape(), device), dtype);
}

std::vector<float> PlainWeight::values() const {
  if (!is_floating()) throw DTypeError(fmt::format("a weight is {}, not a floating type", type()));
  auto out =
      bytes_.with_bytes([&](std::span<const std::byte> bytes) { return to_floats(bytes, dtype_); });
  if (change_.transposed) out = transposed(out, shape());
  if (change_.added != 0)
    for (float& value : out) value -= static_cast<float>(change_.added);
  return out;
}

}  // namespace caldera::detail
