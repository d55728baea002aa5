#include "training/vision/data/cifar.h"

#include <fmt/format.h>

#include <sstream>
#include <string>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "training/vision/data/image_bytes.h"

namespace caldera::vision {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kExtent = 32;
constexpr std::size_t kPixels = 3 * 32 * 32;

std::size_t label_bytes(CifarKind kind) { return kind == CifarKind::cifar10 ? 1 : 2; }

std::vector<std::string> names_beside(const fs::path& file, CifarKind kind) {
  const std::int64_t count = kind == CifarKind::cifar10 ? 10 : 100;
  const fs::path path =
      file.parent_path() / (kind == CifarKind::cifar10 ? "batches.meta.txt" : "fine_label_names.txt");
  if (!fs::is_regular_file(path)) {
    if (kind == CifarKind::cifar100) return numbered_classes(count);
    return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  }
  std::istringstream lines(read_text_file(path, 1 << 20));
  std::vector<std::string> names;
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.empty()) names.push_back(line);
  }
  if (static_cast<std::int64_t>(names.size()) != count)
    throw FileError(fmt::format("{}: {} names for {} classes", path.string(), names.size(), count));
  return names;
}

}  // namespace

CifarKind cifar_kind(const fs::path& file) {
  const std::size_t bytes = read_image_bytes(file).size();
  for (const CifarKind kind : {CifarKind::cifar10, CifarKind::cifar100}) {
    if (bytes > 0 && bytes % (label_bytes(kind) + kPixels) == 0) return kind;
  }
  throw FileError(
      fmt::format("{}: {} bytes are no number of records of CIFAR-10 (3,073 bytes) or CIFAR-100 (3,074)",
                  file.string(), bytes));
}

ImageDatasetPtr open_cifar(const std::vector<fs::path>& files, CifarKind kind) {
  if (files.empty()) throw ValueError("open_cifar: no files");
  std::vector<std::string> names = names_beside(files.front(), kind);
  const std::size_t head = label_bytes(kind), record = head + kPixels;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;
  for (const fs::path& file : files) {
    const std::vector<std::uint8_t> bytes = read_image_bytes(file);
    if (bytes.empty() || bytes.size() % record != 0)
      throw FileError(
          fmt::format("{}: {} bytes are no number of records of {} bytes; the file is cut or of "
                      "another kind",
                      file.string(), bytes.size(), record));
    for (std::size_t at = 0; at < bytes.size(); at += record) {
      const std::int64_t label = bytes[at + head - 1];
      if (label >= static_cast<std::int64_t>(names.size()))
        throw FileError(fmt::format("{}: label {} of record {} is none of {} classes", file.string(), label,
                                    at / record, names.size()));
      labels.push_back(label);
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at + head);
      pixels.insert(pixels.end(), first, first + static_cast<std::ptrdiff_t>(kPixels));
    }
  }
  return std::make_shared<MemoryImages>(3, kExtent, kExtent, std::move(pixels), std::move(labels),
                                        std::move(names));
}

}  // namespace caldera::vision
