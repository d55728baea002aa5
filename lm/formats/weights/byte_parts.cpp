#include "lm/formats/weights/byte_parts.h"

#include "lm/base/mapped_file.h"

namespace caldera::detail {

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
