#include "training/vision/data/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/base/error.h"
#include "training/vision/data/image_file.h"

namespace caldera::vision {
namespace {

namespace fs = std::filesystem;

class FolderImages final : public ImageDataset {
 public:
  FolderImages(const fs::path& folder, std::int64_t channels) : channels_(channels) {
    if (!fs::is_directory(folder)) throw FileError(folder.string() + ": no such folder");
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory() && !entry.path().filename().string().starts_with('.'))
        folders.push_back(entry.path());
    }
    std::ranges::sort(folders);
    for (const fs::path& of_class : folders) {
      std::vector<fs::path> files = image_files(of_class);
      if (files.empty())
        throw FileError(of_class.string() + ": no PNG or JPEG files in the folder of a class");
      for (fs::path& file : files) {
        files_.push_back(std::move(file));
        labels_.push_back(classes());
      }
      names_.push_back(of_class.filename().string());
    }
    if (names_.empty())
      throw FileError(folder.string() + ": no folders in it; images stand in a folder for each class");
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  Image image(std::int64_t index) const override {
    check_index(index);
    return read_image(files_[static_cast<std::size_t>(index)], {.channels = channels_});
  }
  std::int64_t label(std::int64_t index) const override {
    check_index(index);
    return labels_[static_cast<std::size_t>(index)];
  }
  const std::vector<std::string>& class_names() const override { return names_; }

 private:
  std::int64_t channels_;
  std::vector<fs::path> files_;
  std::vector<std::int64_t> labels_;
  std::vector<std::string> names_;
};

}  // namespace

ImageDatasetPtr open_image_folder(const fs::path& folder, std::int64_t channels) {
  return std::make_shared<FolderImages>(folder, channels);
}

}  // namespace caldera::vision
