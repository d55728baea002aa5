// Weights that stay in the files that they are read from.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "lm/base/mapped_file.h"
#include "lm/formats/weights/byte_parts.h"
#include "lm/formats/weights/weight_target.h"
#include "ops/ops.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

namespace fs = std::filesystem;

const std::vector<float> kNumbers = {1, 2, 3, 4, 5, 6, 7, 8};

/// A file of `before` bytes and then the numbers.
fs::path write_numbers(const fs::path& path, std::size_t before) {
  std::string bytes(before, 'x');
  bytes.append(reinterpret_cast<const char*>(kNumbers.data()), kNumbers.size() * sizeof(float));
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::vector<float> numbers_in(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<float> numbers(kNumbers.size());
  file.read(reinterpret_cast<char*>(numbers.data()),
            static_cast<std::streamsize>(numbers.size() * sizeof(float)));
  return numbers;
}

const WeightTarget kInFile{Device::cpu(), true};

TEST(MappedWeights, OutliveTheFileObjectAndTheName) {
  const TempFolder folder;
  const fs::path path = write_numbers(folder / "numbers", 0);
  LazyTensor tensor;
  {
    const detail::MappedFile file(path);
    tensor = detail::ByteParts(file.bytes()).tensor(DType::f32, Shape{8}, kInFile);
    EXPECT_EQ(tensor.node().value().storage->host_data(), file.bytes().data()) << "no copy";
  }
  write_numbers(folder / "other", 4);
  fs::rename(folder / "other", path);  // as programs replace files
  EXPECT_EQ(tensor.to_vector<float>(), kNumbers);
  EXPECT_EQ((tensor * 2.0F).to_vector<float>(), (std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16}));
}

TEST(MappedWeights, AreNeverWrittenToTheFile) {
  const TempFolder folder;
  const fs::path path = write_numbers(folder / "numbers", 0);
  std::optional<detail::MappedFile> file(path);
  LazyTensor tensor = detail::ByteParts(file->bytes()).tensor(DType::f32, Shape{8}, kInFile);
  file.reset();
  // Nobody else holds it when the result is computed, which takes the memory.
  tensor = dynamic_update_slice(tensor,
                                LazyTensor::from_vector(std::vector<float>{-1, -2}, Shape{2}, Device::cpu()),
                                std::vector<LazyTensor>{3});
  EXPECT_EQ(tensor.to_vector<float>(), (std::vector<float>{1, 2, 3, -1, -2, 6, 7, 8}));
  EXPECT_EQ(numbers_in(path), kNumbers);
}

TEST(MappedWeights, AreCopiedWhereTheTypeAsksForIt) {
  const TempFolder folder;
  const detail::MappedFile file(write_numbers(folder / "numbers", 3));
  const auto bytes = file.bytes().subspan(3);
  const LazyTensor tensor = detail::ByteParts(bytes).tensor(DType::f32, Shape{8}, kInFile);
  EXPECT_NE(tensor.node().value().storage->host_data(), bytes.data()) << "no float lies at an odd address";
  EXPECT_EQ(tensor.to_vector<float>(), kNumbers);
  const LazyTensor as_bytes = detail::ByteParts(bytes).tensor(DType::u8, Shape{32}, kInFile);
  EXPECT_EQ(as_bytes.node().value().storage->host_data(), bytes.data());

  detail::ByteParts pieces(bytes.first(16));
  pieces.add(bytes.last(16));
  EXPECT_EQ(pieces.tensor(DType::f32, Shape{8}, kInFile).to_vector<float>(), kNumbers);
  const detail::ByteParts whole(bytes);
  EXPECT_EQ(whole.tensor(DType::f32, Shape{8}, Device::cpu()).to_vector<float>(), kNumbers);
}

TEST(MappedWeights, KnowWhichBytesAreMapped) {
  const TempFolder folder;
  std::optional<detail::MappedFile> file(write_numbers(folder / "numbers", 0));
  const std::span<const std::byte> bytes = file->bytes();
  EXPECT_EQ(detail::keep_mapped(bytes.subspan(8, 8)).get(), bytes.data() + 8);
  EXPECT_EQ(detail::keep_mapped({bytes.data(), bytes.size() + 1}), nullptr);
  std::vector<std::byte> own(8);
  EXPECT_EQ(detail::keep_mapped(own), nullptr);
  file.reset();
  EXPECT_EQ(detail::keep_mapped(bytes), nullptr) << "nobody holds it any more";
}

}  // namespace
}  // namespace caldera::testing
