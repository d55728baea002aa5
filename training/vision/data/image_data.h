// ImageData: the images that a folder has for training and for testing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "training/vision/data/image_dataset.h"

namespace caldera::vision {

/// Holds both, with one set of classes.
struct ImageData {
  ImageDatasetPtr train, test;
  std::string form;  ///< "IDX", "CIFAR-10", "CIFAR-100" or "folders"
};

/// Finds out what a folder has, and opens it:
///
/// - `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-...` (MNIST) or `*-train-images-...`,
///   `*-test-images-...` (EMNIST), each packed (.gz) or not;
/// - `*.bin` of CIFAR-10 or CIFAR-100, of which those with "test" in their names are for testing;
/// - folders `train` and `test` (or `val`), which have a folder of images for each class; or such folders
///   alone.
///
/// Where there is nothing for testing, a tenth of the images, drawn by `seed`, is held out. Throws FileError,
/// also where all images are of one class, and where those for testing have another size than those of a file
/// for training.
ImageData open_image_data(const std::filesystem::path& folder, std::uint64_t seed = 0);

}  // namespace caldera::vision
