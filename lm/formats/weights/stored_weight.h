// StoredWeight: one weight as a model's files hold it, whatever their format.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "lm/formats/weights/weight_target.h"
#include "ops/quantized/quantized_tensor.h"

namespace caldera {

/// Says what a weight is and reads it when asked: files of hundreds of gigabytes are opened at once. It lives
/// no longer than the files that it is of. A const object may be used from several threads.
class StoredWeight {
 public:
  explicit StoredWeight(const Shape& shape) : shape_(shape) {}
  virtual ~StoredWeight() = default;
  StoredWeight(const StoredWeight&) = delete;
  StoredWeight& operator=(const StoredWeight&) = delete;

  /// Its shape as Hugging Face has it: (out, in) of a linear layer.
  const Shape& shape() const { return shape_; }
  /// Says how its values are stored, for people: "float16", "q4_k".
  virtual std::string type() const = 0;
  /// Whether its values are real numbers, as weights are.
  virtual bool is_floating() const { return true; }
  /// The smallest floating type that holds its values without loss, as far as the file says it.
  virtual DType natural_dtype() const { return DType::f32; }
  /// Its values in `dtype` (f32, f16 or bf16) on a device, evaluated. Throws DTypeError unless is_floating().
  virtual LazyTensor read(DType dtype, WeightTarget target) const = 0;
  /// Its values on the host, row-major. Throws DTypeError unless is_floating().
  virtual std::vector<float> values() const = 0;
  /// Its values as they are stored, if they are quantised in a format that products take; else nothing.
  virtual std::optional<QuantizedTensor> read_quantized(WeightTarget) const { return std::nullopt; }
  /// Does so for floats of 16 bits: a matrix, or, if `of_transposes`, several that products use transposed.
  virtual std::optional<QuantizedTensor> read_halves(WeightTarget, bool /*of_transposes*/) const {
    return std::nullopt;
  }

 private:
  Shape shape_;
};

using StoredWeightPtr = std::unique_ptr<StoredWeight>;

}  // namespace caldera
