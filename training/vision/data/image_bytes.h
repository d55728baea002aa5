// Reads the files of image datasets as bytes. Private to training/vision/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace caldera::vision {

/// Reads a file, and unpacks it if its name ends in ".gz". Where a file "SHA256SUMS" (as sha256sum writes) is
/// in the same folder and names it, its checksum is compared first. Throws FileError for a file that is
/// missing, damaged (the sum, gzip's own CRC), or unpacks to more than `most` bytes, and for ".gz" where the
/// library was built without zlib.
std::vector<std::uint8_t> read_image_bytes(const std::filesystem::path& path,
                                           std::size_t most = std::size_t{1} << 32);

}  // namespace caldera::vision
