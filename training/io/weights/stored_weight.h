// StoredWeight: one weight as a model's files hold it, whatever their format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Says what a weight is and reads it when asked: files of hundreds of gigabytes are opened at once. Reads
/// what the file had when it was opened; keeps the file open. A const object may be used from several threads.
class StoredWeight {
 public:
  explicit StoredWeight(Shape shape) : shape_(std::move(shape)) {}
  virtual ~StoredWeight() = default;
  StoredWeight(const StoredWeight&) = delete;
  StoredWeight& operator=(const StoredWeight&) = delete;

  /// Its shape as Hugging Face has it: (out, in) of a linear layer.
  const Shape& shape() const { return shape_; }
  /// How its values are stored, for people: "float16", "Q4_K".
  virtual std::string type() const = 0;
  /// Whether its values are real numbers, as weights are.
  virtual bool is_floating() const { return true; }
  /// Its values in `dtype`, a floating type, on `device`, evaluated. Throws DTypeError unless is_floating().
  virtual LazyTensor read(DType dtype, Device device) const = 0;
  /// Its values on the host, row-major. Throws DTypeError unless is_floating().
  virtual std::vector<float> values() const = 0;

 private:
  Shape shape_;
};

using StoredWeightPtr = std::unique_ptr<StoredWeight>;

}  // namespace caldera
