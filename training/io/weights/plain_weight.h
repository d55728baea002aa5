// PlainWeight: a weight whose elements have a dtype of the engine's. Private to training/io.
#pragma once

#include <span>

#include "training/io/weights/byte_parts.h"
#include "training/io/weights/stored_weight.h"

namespace caldera::detail {

/// How a file's values differ from Hugging Face's.
struct ValueChange {
  double added = 0;         ///< what the file added to each: it is subtracted again
  bool transposed = false;  ///< a matrix, of which the file has the transpose
};

class PlainWeight final : public StoredWeight {
 public:
  /// `bytes` are those of the file's tensor, of `dtype` and, where they are transposed, shape[1] x shape[0].
  PlainWeight(Shape shape, DType dtype, ByteParts bytes, ValueChange change = {})
      : StoredWeight(std::move(shape)), dtype_(dtype), bytes_(std::move(bytes)), change_(change) {}

  std::string type() const override { return std::string(name(dtype_)); }
  bool is_floating() const override { return caldera::is_floating(dtype_); }
  LazyTensor read(DType dtype, Device device) const override;
  std::vector<float> values() const override;

 private:
  DType dtype_;
  ByteParts bytes_;
  ValueChange change_;
};

/// Elements of a floating dtype as f32, from bytes at any address.
std::vector<float> to_floats(std::span<const std::byte> bytes, DType dtype);

}  // namespace caldera::detail
