#include "lm/formats/weights/computed_weight.h"

#include "lm/formats/weights/plain_weight.h"

namespace caldera::detail {

LazyTensor ComputedWeight::read(DType dtype, WeightTarget target) const {
  return converted(LazyTensor::from_vector(values_(), shape(), target.device), dtype);
}

}  // namespace caldera::detail
