// ComputedWeight: a weight whose values the host works out as it reads them. Private to lm/formats/.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lm/formats/weights/stored_weight.h"

namespace caldera::detail {

/// Holds forms that no product takes as they are: the values are floats in memory.
class ComputedWeight final : public StoredWeight {
 public:
  /// `values` gives one for each element of the shape, row-major.
  ComputedWeight(const Shape& shape, std::string type, std::function<std::vector<float>()> values)
      : StoredWeight(shape), type_(std::move(type)), values_(std::move(values)) {}

  std::string type() const override { return type_; }
  LazyTensor read(DType dtype, WeightTarget target) const override;
  std::vector<float> values() const override { return values_(); }

 private:
  std::string type_;
  std::function<std::vector<float>()> values_;
};

}  // namespace caldera::detail
