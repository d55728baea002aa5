#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/base/json_text.h"
#include "lm/formats/safetensors/safetensors.h"
#include "lm/formats/safetensors/safetensors_header.h"

namespace caldera {
namespace {

/// A tensor whose bytes are handed to a sink.
struct Item {
  std::string_view name;
  DType dtype;
  const Shape* shape = nullptr;
  std::uint64_t bytes = 0;
  std::function<void(const ByteSink&)> write;
};

[[noreturn]] void fail(std::string_view tensor, const std::string& problem) {
  throw ValueError(fmt::format("write_safetensors: tensor '{}' {}", detail::printable(tensor), problem));
}

/// The bytes that shape and dtype need.
std::uint64_t needed_bytes(const Item& item) {
  if (item.name == "__metadata__") fail(item.name, "has a name that the format reserves");
  std::uint64_t bytes = size_of(item.dtype);
  for (const std::int64_t extent : *item.shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
      fail(item.name, fmt::format("has an impossible shape {}", item.shape->to_string()));
    }
  }
  return bytes;
}

void check_bytes(const Item& item, std::uint64_t found) {
  if (item.bytes != found) {
    fail(item.name, fmt::format("of shape {} and dtype {} needs {} bytes, not {}", item.shape->to_string(),
                                name(item.dtype), item.bytes, found));
  }
}

void write_items(StagedFiles& files, const std::filesystem::path& path, std::vector<Item> order,
                 const std::map<std::string, std::string>& metadata) {
  std::set<std::string_view> names;
  for (const Item& item : order) {
    if (!names.insert(item.name).second) {
      throw ValueError(
          fmt::format("write_safetensors: two tensors are named '{}'", detail::printable(item.name)));
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Item& a, const Item& b) { return size_of(a.dtype) > size_of(b.dtype); });

  // Built as text: an ordered JSON object would search linearly for each name, and names are known to be
  // unique.
  std::string text = "{";
  try {
    if (!metadata.empty()) {
      const detail::JsonMembers members(metadata.begin(), metadata.end());
      text += fmt::format("\"__metadata__\":{},", detail::to_json(members));
    }
    std::uint64_t offset = 0;
    for (const Item& item : order) {
      const std::uint64_t end = offset + item.bytes;
      text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)",
                          detail::json_string(item.name), detail::safetensors_name(item.dtype),
                          fmt::join(*item.shape, ","), offset, end);
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

  files.add(path, [&](const ByteSink& sink) {
    sink(std::span(length));
    sink(std::as_bytes(std::span(text)));
    for (const Item& item : order) item.write(sink);
  });
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
  std::vector<Item> items;
  for (const TensorToWrite& tensor : tensors) {
    Item& item = items.emplace_back(
        Item{tensor.name, tensor.dtype, &tensor.shape, 0, [&](const ByteSink& sink) { sink(tensor.bytes); }});
    item.bytes = needed_bytes(item);
    check_bytes(item, tensor.bytes.size());
  }
  write_items(files, path, std::move(items), metadata);
}

void write_safetensors(StagedFiles& files, const std::filesystem::path& path,
                       std::span<const TensorToMake> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<Item> items;
  for (const TensorToMake& tensor : tensors) {
    Item& item = items.emplace_back(Item{tensor.name, tensor.dtype, &tensor.shape, 0, {}});
    item.bytes = needed_bytes(item);
    item.write = [&tensor, item](const ByteSink& sink) {
      const std::vector<std::byte> bytes = tensor.make();
      check_bytes(item, bytes.size());
      sink(bytes);
    };
  }
  write_items(files, path, std::move(items), metadata);
}

}  // namespace caldera
