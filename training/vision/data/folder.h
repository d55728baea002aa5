// Folders of images: a folder for each class.
#pragma once

#include <filesystem>

#include "training/vision/data/image_dataset.h"

namespace caldera::vision {

/// Shows the images of a folder's folders, whose names, sorted, are the classes (torchvision's ImageFolder),
/// but for those that begin with a dot. A file is read when its image is asked for. Throws FileError where
/// there is no folder of images.
ImageDatasetPtr open_image_folder(const std::filesystem::path& folder, std::int64_t channels = 3);

}  // namespace caldera::vision
