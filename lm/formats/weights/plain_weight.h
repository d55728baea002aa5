// PlainWeight: a weight whose elements have a dtype of the engine's. Private to lm/formats/.
#pragma once

#include <span>

#include "lm/formats/weights/byte_parts.h"
#include "lm/formats/weights/stored_weight.h"

namespace caldera::detail {

class PlainWeight final : public StoredWeight {
 public:
  PlainWeight(const Shape& shape, DType dtype, ByteParts bytes)
      : StoredWeight(shape), dtype_(dtype), bytes_(std::move(bytes)) {}

  std::string type() const override { return std::string(name(dtype_)); }
  bool is_floating() const override { return caldera::is_floating(dtype_); }
  DType natural_dtype() const override { return is_half(dtype_) ? dtype_ : DType::f32; }
  LazyTensor read(DType dtype, WeightTarget target) const override;
  std::vector<float> values() const override;
  std::optional<QuantizedTensor> read_halves(WeightTarget target, bool of_transposes) const override;

 private:
  DType dtype_;
  ByteParts bytes_;
};

/// Elements of a floating dtype as f32, from bytes at any address.
std::vector<float> to_floats(std::span<const std::byte> bytes, DType dtype);

/// The value in another dtype as a leaf, evaluated: what it was made of is let go.
LazyTensor converted(const LazyTensor& x, DType dtype);

}  // namespace caldera::detail
