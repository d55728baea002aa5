// PackedWeight: a weight that is stored in a quantised format of the engine's. Private to lm/formats/.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lm/formats/weights/byte_parts.h"
#include "lm/formats/weights/stored_weight.h"

namespace caldera::detail {

/// Says where one of the tensors that make up a quantised matrix comes from.
struct PackedPart {
  DType dtype;
  ByteParts bytes;  ///< of the file, where the file has it as it is
  /// Makes its bytes, where the file has it in another form. They are made when they are read.
  std::function<std::vector<std::byte>()> make;
};

class PackedWeight final : public StoredWeight {
 public:
  /// `parts` in the order of parts_of(layout, ...). `shape` is (rows, columns), or (matrices, rows, columns),
  /// each part then that of all of them. Throws ShapeError for sizes that do not fit.
  PackedWeight(const Shape& shape, const QuantizedLayout& layout, std::vector<PackedPart> parts);

  std::string type() const override { return std::string(name(layout_.format)); }
  LazyTensor read(DType dtype, WeightTarget target) const override;
  std::vector<float> values() const override;
  std::optional<QuantizedTensor> read_quantized(WeightTarget target) const override;

 private:
  QuantizedLayout layout_;
  std::vector<PackedPart> parts_;
};

/// The bytes of a vector of numbers.
template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace caldera::detail
