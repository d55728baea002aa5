// Images as files: PNG (by libpng) and JPEG (by libjpeg-turbo).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "training/vision/data/image.h"

namespace caldera::vision {

struct ImageFileOptions {
  std::int64_t channels = 3;  ///< 1 (grey) or 3 (red, green, blue); an alpha channel is left out
  std::int64_t most_pixels = std::int64_t{1} << 28;  ///< a larger image is refused
};

/// Reads an image; what it is its first bytes say, not its name. Throws FileError for a file that is
/// missing, cut, damaged, larger than allowed, or neither PNG nor JPEG, and where the library was built
/// without what reads it.
Image read_image(const std::filesystem::path& path, const ImageFileOptions& options = {});
/// Reads it from bytes; `name` begins messages.
Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name,
                   const ImageFileOptions& options = {});

/// Lists images of a folder whose names end in .png, .jpg or .jpeg, sorted.
std::vector<std::filesystem::path> image_files(const std::filesystem::path& folder);

}  // namespace caldera::vision
