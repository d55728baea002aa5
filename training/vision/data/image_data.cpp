#include "training/vision/data/image_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/base/error.h"
#include "training/vision/data/cifar.h"
#include "training/vision/data/folder.h"
#include "training/vision/data/idx.h"
#include "training/vision/data/samplers.h"

namespace caldera::vision {
namespace {

namespace fs = std::filesystem;

/// Finds the file whose name ends so, packed or not; empty where there is none.
fs::path file_ending(const std::vector<fs::path>& files, const std::string& ending) {
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    if (name.ends_with(ending) || name.ends_with(ending + ".gz")) return file;
  }
  return {};
}

ImageDatasetPtr idx_part(const std::vector<fs::path>& files, const std::vector<std::string>& parts,
                         const fs::path& folder) {
  for (const std::string& part : parts) {
    const fs::path images = file_ending(files, part + "-images-idx3-ubyte");
    if (images.empty()) continue;
    const fs::path labels = file_ending(files, part + "-labels-idx1-ubyte");
    if (labels.empty())
      throw FileError(fmt::format("{}: there is no '{}-labels-idx1-ubyte' for '{}'", folder.string(), part,
                                  images.filename().string()));
    return open_idx(images, labels);
  }
  return nullptr;
}

/// Takes a tenth of the images away for testing.
ImageData held_out(const ImageDatasetPtr& all, std::string form, std::uint64_t seed) {
  std::vector<std::int64_t> order = shuffled_order(all->size(), seed);
  const auto count = std::max<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(order.size() / 10));
  std::vector<std::int64_t> test(order.begin(), order.begin() + count);
  order.erase(order.begin(), order.begin() + count);
  std::ranges::sort(test);
  std::ranges::sort(order);
  return {subset(all, std::move(order)), subset(all, std::move(test)), std::move(form)};
}

ImageData joined(ImageDatasetPtr train, ImageDatasetPtr test, std::string form, std::uint64_t seed,
                 const fs::path& folder) {
  if (train->size() < 2) throw FileError(folder.string() + ": fewer than two images for training");
  if (train->classes() < 2)
    throw FileError(fmt::format("{}: all images are of one class, '{}'; there is nothing to tell apart",
                                folder.string(), train->class_names().front()));
  if (!test) return held_out(train, std::move(form), seed);
  if (train->class_names() != test->class_names())
    throw FileError(fmt::format("{}: {} classes for training and {} for testing, which are not the same",
                                folder.string(), train->classes(), test->classes()));
  if (test->size() < 1) throw FileError(folder.string() + ": no images for testing");
  if (form != "folders") {  // whose images have any size
    const Image a = train->image(0), b = test->image(0);
    if (a.channels != b.channels || a.height != b.height || a.width != b.width)
      throw FileError(fmt::format("{}: images of {} x {} x {} for training and of {} x {} x {} for testing",
                                  folder.string(), a.channels, a.height, a.width, b.channels, b.height,
                                  b.width));
  }
  return {std::move(train), std::move(test), std::move(form)};
}

}  // namespace

ImageData open_image_data(const fs::path& folder, std::uint64_t seed) {
  if (!fs::is_directory(folder)) throw FileError(folder.string() + ": no such folder");
  std::vector<fs::path> files, train_bins, test_bins;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  if (auto train = idx_part(files, {"train"}, folder))
    return joined(train, idx_part(files, {"t10k", "test"}, folder), "IDX", seed, folder);
  for (const fs::path& file : files) {
    if (file.extension() != ".bin") continue;
    const bool is_test = file.filename().string().find("test") != std::string::npos;
    (is_test ? test_bins : train_bins).push_back(file);
  }
  if (!train_bins.empty()) {
    const CifarKind kind = cifar_kind(train_bins.front());
    return joined(open_cifar(train_bins, kind), test_bins.empty() ? nullptr : open_cifar(test_bins, kind),
                  kind == CifarKind::cifar10 ? "CIFAR-10" : "CIFAR-100", seed, folder);
  }
  if (fs::is_directory(folder / "train")) {
    ImageDatasetPtr test;
    for (const char* name : {"test", "val"}) {
      if (!test && fs::is_directory(folder / name)) test = open_image_folder(folder / name);
    }
    return joined(open_image_folder(folder / "train"), test, "folders", seed, folder);
  }
  const auto is_folder = [](const fs::directory_entry& entry) { return entry.is_directory(); };
  if (std::any_of(fs::directory_iterator(folder), fs::directory_iterator(), is_folder))
    return joined(open_image_folder(folder), nullptr, "folders", seed, folder);
  throw FileError(folder.string() +
                  ": no images are known there: neither IDX files (train-images-idx3-ubyte), nor CIFAR's "
                  "(*.bin), nor a folder for each class");
}

}  // namespace caldera::vision
