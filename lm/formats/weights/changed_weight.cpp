#include "lm/formats/weights/changed_weight.h"

#include <utility>

#include "lm/formats/weights/plain_weight.h"

namespace caldera::detail {
namespace {

Shape changed_shape(const StoredWeight& stored, const ValueChange& change) {
  Shape shape = stored.shape();
  if (change.transposed) std::swap(shape[shape.rank() - 2], shape[shape.rank() - 1]);
  return shape;
}

}  // namespace

ChangedWeight::ChangedWeight(StoredWeightPtr stored, ValueChange change)
    : StoredWeight(changed_shape(*stored, change)), stored_(std::move(stored)), change_(change) {}

LazyTensor ChangedWeight::read(DType dtype, WeightTarget target) const {
  return converted(LazyTensor::from_vector(values(), shape(), target.device), dtype);
}

std::vector<float> ChangedWeight::values() const {
  std::vector<float> values = stored_->values();
  if (change_.added != 0)
    for (float& value : values) value -= static_cast<float>(change_.added);
  if (!change_.transposed) return values;
  const auto rows = static_cast<std::size_t>(shape()[shape().rank() - 2]);
  const auto columns = static_cast<std::size_t>(shape()[shape().rank() - 1]);
  std::vector<float> out(values.size());
  for (std::size_t matrix = 0; matrix < values.size(); matrix += rows * columns)
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) out[matrix + r * columns + c] = values[matrix + c * rows + r];
  return out;
}

std::optional<QuantizedTensor> ChangedWeight::read_quantized(WeightTarget target) const {
  return is_used_as_stored() ? stored_->read_quantized(target) : std::nullopt;
}

std::optional<QuantizedTensor> ChangedWeight::read_halves(WeightTarget target, bool of_transposes) const {
  return is_used_as_stored() && !of_transposes ? stored_->read_halves(target, true) : std::nullopt;
}

}  // namespace caldera::detail
