#include "training/io/weights/changed_weight.h"

#include "training/io/weights/plain_weight.h"

namespace caldera::detail {
namespace {

Shape shape_of(const StoredWeight& stored, const ValueChange& change) {
  const Shape& shape = stored.shape();
  return change.transposed ? Shape{shape[1], shape[0]} : shape;
}

}  // namespace

ChangedWeight::ChangedWeight(StoredWeightPtr stored, ValueChange change)
    : StoredWeight(shape_of(*stored, change)), stored_(std::move(stored)), change_(change) {}

LazyTensor ChangedWeight::read(DType dtype, Device device) const {
  return converted(LazyTensor::from_vector(values(), shape(), device), dtype);
}

std::vector<float> ChangedWeight::values() const {
  std::vector<float> values = stored_->values();
  if (change_.added != 0)
    for (float& value : values) value -= static_cast<float>(change_.added);
  if (!change_.transposed) return values;
  const auto rows = static_cast<std::size_t>(shape()[0]);
  const auto columns = static_cast<std::size_t>(shape()[1]);
  std::vector<float> out(values.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) out[r * columns + c] = values[c * rows + r];
  return out;
}

}  // namespace caldera::detail
