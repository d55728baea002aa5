#include "training/vision/data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/base/error.h"
#include "training/vision/data/image_bytes.h"

namespace caldera::vision {
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr std::size_t kMostExtents = 8;

}  // namespace

IdxArray read_idx(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> bytes = read_image_bytes(path);
  const auto fail = [&](const std::string& why) {
    throw FileError(fmt::format("{}: not a file in the IDX format: {}", path.string(), why));
  };
  if (bytes.size() < 4) fail(fmt::format("it has {} bytes", bytes.size()));
  if (bytes[0] != 0 || bytes[1] != 0)
    fail(fmt::format("it begins with {:02x} {:02x} and not with 00 00", bytes[0], bytes[1]));
  if (bytes[2] != kUnsignedByte)
    fail(fmt::format("its elements are of type 0x{:02x}; images and labels are unsigned bytes (0x08)",
                     bytes[2]));
  const std::size_t rank = bytes[3], header = 4 + 4 * rank;
  if (rank < 1 || rank > kMostExtents) fail(fmt::format("it has {} extents", rank));
  if (bytes.size() < header) fail("it ends among its extents");
  IdxArray array;
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::uint8_t* at = bytes.data() + 4 + 4 * i;
    const std::uint64_t extent = static_cast<std::uint64_t>(at[0]) << 24 |
                                 static_cast<std::uint64_t>(at[1]) << 16 |
                                 static_cast<std::uint64_t>(at[2]) << 8 | at[3];
    array.extents.push_back(static_cast<std::int64_t>(extent));
    // Both are at most 2^32, so that the product fits; no file that is read here has as much.
    count = std::min<std::uint64_t>(count * extent, std::uint64_t{1} << 32);
  }
  if (count != bytes.size() - header)
    fail(fmt::format("its extents ({}) do not give the {} bytes behind them", fmt::join(array.extents, " x "),
                     bytes.size() - header));
  array.values.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  return array;
}

ImageDatasetPtr open_idx(const std::filesystem::path& images, const std::filesystem::path& labels) {
  IdxArray pictures = read_idx(images);
  const IdxArray classes = read_idx(labels);
  if (pictures.extents.size() != 3)
    throw FileError(fmt::format("{}: extents {}; images have three: count, height, width", images.string(),
                                fmt::join(pictures.extents, " x ")));
  if (classes.extents.size() != 1 || classes.extents[0] != pictures.extents[0])
    throw FileError(fmt::format("{}: {} labels for the {} images of {}", labels.string(),
                                fmt::join(classes.extents, " x "), pictures.extents[0], images.string()));
  const std::int64_t height = pictures.extents[1], width = pictures.extents[2];
  if (height < 1 || width < 1) throw FileError(images.string() + ": its images are empty");
  if (images.filename().string().starts_with("emnist") && height == width) {
    for (std::size_t at = 0; at < pictures.values.size(); at += static_cast<std::size_t>(height * width)) {
      for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = y + 1; x < width; ++x)
          std::swap(pictures.values[at + static_cast<std::size_t>(y * width + x)],
                    pictures.values[at + static_cast<std::size_t>(x * width + y)]);
      }
    }
  }
  std::vector<std::int64_t> numbers(classes.values.begin(), classes.values.end());
  std::int64_t most = 9;  // a part of the digits may lack some
  for (const std::int64_t label : numbers) most = std::max(most, label);
  return std::make_shared<MemoryImages>(1, height, width, std::move(pictures.values), std::move(numbers),
                                        numbered_classes(most + 1));
}

}  // namespace caldera::vision
