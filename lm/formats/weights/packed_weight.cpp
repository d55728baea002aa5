#include "lm/formats/weights/packed_weight.h"

#include <fmt/format.h>

#include "lm/formats/weights/plain_weight.h"
#include "ops/quantized/quantized_products.h"

namespace caldera::detail {
namespace {

std::int64_t matrices(const Shape& shape) { return shape.rank() == 3 ? shape[0] : 1; }

/// The tensors of a weight of this shape; throws ShapeError where there are none.
std::vector<QuantizedPart> wanted_parts(const Shape& shape, const QuantizedLayout& layout) {
  if (shape.rank() != 2 && shape.rank() != 3)
    throw ShapeError(fmt::format("{} {} is no matrix", name(layout.format), shape.to_string()));
  const std::int64_t rows = shape[shape.rank() - 2];
  const std::int64_t columns = shape[shape.rank() - 1];
  if (const std::string_view why = why_no_layout(layout, rows, columns); !why.empty())
    throw ShapeError(fmt::format("{} {}: {}", name(layout.format), shape.to_string(), why));
  return parts_of(layout, rows, columns);
}

Shape packed_shape(const Shape& weight, const QuantizedPart& part) {
  return weight.rank() == 3 ? Shape{weight[0], part.rows, part.columns} : Shape{part.rows, part.columns};
}

}  // namespace

PackedWeight::PackedWeight(const Shape& shape, const QuantizedLayout& layout, std::vector<PackedPart> parts)
    : StoredWeight(shape), layout_(layout), parts_(std::move(parts)) {
  const std::vector<QuantizedPart> wanted = wanted_parts(this->shape(), layout_);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (parts_.at(i).make) continue;
    const auto bytes =
        static_cast<std::size_t>(matrices(this->shape()) * wanted[i].rows * wanted[i].columns) *
        size_of(parts_[i].dtype);
    if (parts_[i].bytes.size() != bytes)
      throw ShapeError(fmt::format("the {} of {} {} have {} bytes, not {}", wanted[i].name,
                                   name(layout_.format), this->shape().to_string(), parts_[i].bytes.size(),
                                   bytes));
  }
}

std::optional<QuantizedTensor> PackedWeight::read_quantized(WeightTarget target) const {
  const std::vector<QuantizedPart> wanted = wanted_parts(shape(), layout_);
  std::vector<LazyTensor> tensors;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Shape packed = packed_shape(shape(), wanted[i]);
    if (!parts_[i].make) {
      tensors.push_back(parts_[i].bytes.tensor(parts_[i].dtype, packed, target));
      continue;
    }
    const std::vector<std::byte> bytes = parts_[i].make();
    tensors.push_back(
        LazyTensor::from_bytes(bytes.data(), bytes.size(), parts_[i].dtype, packed, target.device));
  }
  return quantized_tensor(layout_, shape(), std::move(tensors));
}

LazyTensor PackedWeight::read(DType dtype, WeightTarget target) const {
  return converted(dequantize(*read_quantized(target), dtype), dtype);
}

std::vector<float> PackedWeight::values() const {
  return dequantize(*read_quantized(Device::cpu())).to_vector<float>();
}

}  // namespace caldera::detail
