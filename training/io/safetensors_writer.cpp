#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "engine/tensor/error.h"
#include "training/io/atomic_file.h"
#include "training/io/json_file.h"
#include "training/io/json_text.h"
#include "training/io/safetensors.h"
#include "training/io/safetensors_header.h"

namespace caldera {
namespace {

void check(const TensorToWrite& tensor) {
  const auto fail = [&](const std::string& problem) {
    throw ValueError(
        fmt::format("write_safetensors: tensor '{}' {}", detail::printable(tensor.name), problem));
  };
  if (tensor.name == "__metadata__") fail("has a name that the format reserves");
  std::uint64_t bytes = size_of(tensor.dtype);
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
      fail(fmt::format("has an impossible shape {}", tensor.shape.to_string()));
    }
  }
  if (bytes != tensor.bytes.size()) {
    fail(fmt::format("of shape {} and dtype {} needs {} bytes, not {}", tensor.shape.to_string(),
                     name(tensor.dtype), bytes, tensor.bytes.size()));
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  StagedFiles files;
  write_safetensors(files, path, tensors, metadata);
  files.commit();
}

void write_safetensors(StagedFiles& files, const std::filesystem::path& path,
                       std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorToWrite*> order;
  std::set<std::string_view> names;
  for (const auto& tensor : tensors) {
    check(tensor);
    if (!names.insert(tensor.name).second) {
      throw ValueError(
          fmt::format("write_safetensors: two tensors are named '{}'", detail::printable(tensor.name)));
    }
    order.push_back(&tensor);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return size_of(a->dtype) > size_of(b->dtype); });

  // Built as text: an ordered JSON object would search linearly for each name, and names are known to be
  // unique.
  std::string text = "{";
  try {
    if (!metadata.empty()) {
      const detail::JsonMembers members(metadata.begin(), metadata.end());
      text += fmt::format("\"__metadata__\":{},", detail::to_json(members));
    }
    std::uint64_t offset = 0;
    for (const auto* tensor : order) {
      const std::uint64_t end = offset + tensor->bytes.size();
      text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)",
                          detail::json_string(tensor->name), detail::safetensors_name(tensor->dtype),
                          fmt::join(tensor->shape, ","), offset, end);
      offset = end;
    }
  } catch (const ValueError&) {
    throw ValueError(
        fmt::format("write_safetensors: {}: a name or a metadata string is not UTF-8", path.string()));
  }
  if (text.back() == ',') text.pop_back();
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > detail::kMaxSafetensorsHeader) {
    throw ValueError(fmt::format("write_safetensors: {}: the header is too large", path.string()));
  }
  const auto length = std::bit_cast<std::array<std::byte, 8>>(static_cast<std::uint64_t>(text.size()));

  std::vector<std::span<const std::byte>> parts{std::span(length), std::as_bytes(std::span(text))};
  for (const auto* tensor : order) parts.push_back(tensor->bytes);
  files.add(path, parts);
}

}  // namespace caldera
