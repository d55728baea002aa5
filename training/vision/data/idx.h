// Files in the IDX format, of MNIST, Fashion-MNIST and EMNIST (http://yann.lecun.com/exdb/mnist/).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "training/vision/data/image_dataset.h"

namespace caldera::vision {

/// Holds an array of bytes with its extents.
struct IdxArray {
  std::vector<std::int64_t> extents;
  std::vector<std::uint8_t> values;  ///< row-major
};

/// Reads an IDX file of unsigned bytes, packed by gzip or not. Throws FileError that says what is wrong
/// where: the first four bytes, another type of elements, extents that do not fit the file's length.
IdxArray read_idx(const std::filesystem::path& path);

/// Joins a file of images (count, height, width) with one of labels. EMNIST's images, known by their names,
/// are transposed to stand upright. Throws FileError.
ImageDatasetPtr open_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace caldera::vision
