// The binary files of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html).
#pragma once

#include <filesystem>
#include <vector>

#include "training/vision/data/image_dataset.h"

namespace caldera::vision {

enum class CifarKind : std::uint8_t { cifar10, cifar100 };

/// Joins such files: records of a label (CIFAR-100: the coarse one, then the fine one, which counts) and
/// 3 x 32 x 32 bytes. Classes have the names of `batches.meta.txt` or `fine_label_names.txt` beside the first
/// file, where there is such a file. Throws FileError for a length that no number of records has, and for a
/// label that is no class.
ImageDatasetPtr open_cifar(const std::vector<std::filesystem::path>& files, CifarKind kind);

/// Tells from a file's length which of the two it is. Throws FileError where it is neither.
CifarKind cifar_kind(const std::filesystem::path& file);

}  // namespace caldera::vision
