#include "lm/formats/weights/byte_parts.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/graph/data_leaf.h"
#include "engine/tensor/storage.h"
#include "lm/base/mapped_file.h"

namespace caldera::detail {
namespace {

/// Memory of the CPU that is a part of a file.
class MappedStorage final : public Storage {
 public:
  MappedStorage(std::shared_ptr<std::byte> data, std::size_t bytes)
      : Storage(Device::cpu(), bytes), data_(std::move(data)) {}
  std::byte* host_data() override { return data_.get(); }

 private:
  std::shared_ptr<std::byte> data_;
};

}  // namespace

LazyTensor ByteParts::tensor(DType dtype, const Shape& shape, WeightTarget target) const {
  const bool is_whole = parts_.size() == 1 && !parts_.front().empty() &&
                        reinterpret_cast<std::uintptr_t>(parts_.front().data()) % size_of(dtype) == 0;
  if (target.in_file && target.device == Device::cpu() && is_whole) {
    if (std::shared_ptr<std::byte> data = keep_mapped(parts_.front()))
      return data_leaf(shape, dtype, target.device,
                       Value{std::make_shared<MappedStorage>(std::move(data), size_), 0, nullptr});
  }
  return with_bytes([&](std::span<const std::byte> bytes) {
    return LazyTensor::from_bytes(bytes.data(), bytes.size(), dtype, shape, target.device);
  });
}

std::vector<std::byte> ByteParts::joined() const {
  std::vector<std::byte> bytes;
  bytes.reserve(size_);
  for (const auto& part : parts_) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

void ByteParts::release() const {
  // Rows lie beside one another: what is between the first and the last of them is one range.
  if (parts_.empty()) return;
  for (const auto& part : parts_)
    if (part.size() >= 4096) release_pages(part);
}

ByteParts rows_in_order(std::span<const std::byte> whole, const std::vector<std::int64_t>& order) {
  ByteParts parts;
  const std::size_t row = order.empty() ? 0 : whole.size() / order.size();
  for (const std::int64_t from : order) parts.add(whole.subspan(static_cast<std::size_t>(from) * row, row));
  return parts;
}

}  // namespace caldera::detail
