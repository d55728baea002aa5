#include "lm/formats/weights/plain_weight.h"

#include <fmt/format.h>

#include <cstring>

#include "engine/device/backend.h"
#include "engine/runtime/runtime.h"
#include "engine/tensor/dispatch.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"

namespace caldera::detail {

std::vector<float> to_floats(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> out(bytes.size() / size_of(dtype));
  dispatch<caldera::is_floating>(dtype, [&]<class T>() {
    for (std::size_t i = 0; i < out.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      out[i] = static_cast<float>(to_number(value));
    }
  });
  return out;
}

LazyTensor converted(const LazyTensor& x, DType dtype) {
  if (x.dtype() == dtype && x.is_evaluated()) return x;
  LazyTensor result = stop_gradient(x.dtype() == dtype ? x : astype(x, dtype));
  result.eval();
  return result;
}

LazyTensor PlainWeight::read(DType dtype, WeightTarget target) const {
  if (is_floating() && backend(target.device).supports(dtype_))
    return converted(bytes_.tensor(dtype_, shape(), target), dtype);
  return converted(LazyTensor::from_vector(values(), shape(), target.device), dtype);
}

std::optional<QuantizedTensor> PlainWeight::read_halves(WeightTarget target, bool of_transposes) const {
  if (!is_half(dtype_) || shape().rank() != (of_transposes ? 3 : 2) ||
      !backend(target.device).supports(dtype_))
    return std::nullopt;
  const QuantizedLayout layout{.format = dtype_ == DType::f16 ? QuantizedFormat::f16 : QuantizedFormat::bf16};
  return quantized_tensor(layout, shape(), {bytes_.tensor(dtype_, shape(), target)});
}

std::vector<float> PlainWeight::values() const {
  if (!is_floating()) throw DTypeError(fmt::format("a weight is {}, not a floating type", type()));
  return bytes_.with_bytes([&](std::span<const std::byte> bytes) { return to_floats(bytes, dtype_); });
}

}  // namespace caldera::detail
