#include "lm/formats/weights/computed_weight.h"

#include "lm/formats/weights/plain_weight.h"

namespace caldera::detail {

LazyTensor ComputedWeight::read(DType dtype, Device device) const {
  return converted(LazyTensor::from_vector(values_(), shape(), device), dtype);
}

}  // namespace caldera::detail
