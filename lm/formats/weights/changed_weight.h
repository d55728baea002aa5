// ChangedWeight: a weight whose values a file holds in another form than Hugging Face's. Private to
// lm/formats/.
#pragma once

#include "lm/formats/weights/stored_weight.h"

namespace caldera::detail {

/// Says what a file did to the values, and is undone.
struct ValueChange {
  double added = 0;         ///< to each of them
  bool transposed = false;  ///< it has the transpose of a matrix, or of each of several

  bool is_none() const { return added == 0 && !transposed; }
};

/// The values of `stored` with a change undone, worked out in f32. What is quantised is so no longer, but for
/// several matrices that are transposed (experts): read_quantized() and read_halves() give them as they are
/// stored, and what uses them multiplies by their transposes.
class ChangedWeight final : public StoredWeight {
 public:
  ChangedWeight(StoredWeightPtr stored, ValueChange change);

  std::string type() const override { return stored_->type(); }
  bool is_floating() const override { return stored_->is_floating(); }
  LazyTensor read(DType dtype, WeightTarget target) const override;
  std::vector<float> values() const override;
  std::optional<QuantizedTensor> read_quantized(WeightTarget target) const override;
  std::optional<QuantizedTensor> read_halves(WeightTarget target, bool of_transposes) const override;

 private:
  bool is_used_as_stored() const { return change_.added == 0 && shape().rank() == 3; }

  StoredWeightPtr stored_;
  ValueChange change_;
};

}  // namespace caldera::detail
