// Files of images: right bytes give the right pixels, wrong ones one clear error.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "lm/base/sha256.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_data.h"
#include "training/vision/data/cifar.h"
#include "training/vision/data/folder.h"
#include "training/vision/data/idx.h"
#include "training/vision/data/image_data.h"
#include "training/vision/data/image_file.h"

namespace caldera::vision {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

void write_bytes(const fs::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

Bytes idx_file(const std::vector<std::uint32_t>& extents, const Bytes& values) {
  Bytes bytes{0, 0, 8, static_cast<std::uint8_t>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(extent >> shift));
  }
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

/// What opening says, or nothing where it succeeds. Anything but a FileError fails the test.
template <class Open>
std::string refusal_of(Open open) {
  try {
    open();
  } catch (const FileError& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a FileError: " << error.what();
  }
  return {};
}

TEST(IdxFiles, HaveTheirPixelsAndLabels) {
  const testing::TempFolder folder;
  const fs::path images = folder.path() / "i", labels = folder.path() / "l";
  write_bytes(images, idx_file({2, 2, 3}, {0, 51, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  write_bytes(labels, idx_file({2}, {7, 1}));
  const ImageDatasetPtr data = open_idx(images, labels);
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(data->label(0), 7);
  EXPECT_EQ(data->classes(), 10);
  const Image first = data->image(0);
  EXPECT_EQ(first.height, 2);
  EXPECT_EQ(first.width, 3);
  EXPECT_FLOAT_EQ(first.at(0, 0, 1), 0.2F);
  EXPECT_FLOAT_EQ(first.at(0, 0, 2), 1.0F);
  EXPECT_FLOAT_EQ(data->image(1).at(0, 1, 0), 7.0F / 255);
  EXPECT_THROW(data->image(2), ValueError);
}

TEST(IdxFiles, OfEmnistStandUpright) {
  const testing::TempFolder folder;
  const fs::path images = folder.path() / "emnist-letters-train-images-idx3-ubyte";
  write_bytes(images, idx_file({1, 2, 2}, {1, 2, 3, 4}));
  write_bytes(folder.path() / "l", idx_file({1}, {26}));
  const ImageDatasetPtr data = open_idx(images, folder.path() / "l");
  EXPECT_EQ(data->classes(), 27);
  EXPECT_FLOAT_EQ(data->image(0).at(0, 0, 1), 3.0F / 255);
}

TEST(IdxFiles, AreRefusedAtEachCutAndEachOtherHeader) {
  const testing::TempFolder folder;
  const fs::path path = folder.path() / "x";
  const Bytes right = idx_file({2, 2, 3}, Bytes(12, 9));
  for (std::size_t length = 0; length < right.size(); ++length) {
    write_bytes(path, Bytes(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(length)));
    EXPECT_NE(refusal_of([&] { read_idx(path); }).find(path.string()), std::string::npos) << length;
  }
  for (std::size_t at = 0; at < 16; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes wrong = right;
      wrong[at] ^= static_cast<std::uint8_t>(1 << bit);
      write_bytes(path, wrong);
      EXPECT_NE(refusal_of([&] { read_idx(path); }), "") << at << " bit " << bit;
    }
  }
  // Extents whose product passes 2^64.
  write_bytes(path, idx_file({0xffffffff, 0xffffffff, 0xffffffff}, Bytes(12)));
  EXPECT_NE(refusal_of([&] { read_idx(path); }), "");
  write_bytes(path, idx_file({3}, {1, 2, 3}));
  write_bytes(folder.path() / "l", idx_file({3}, {1, 2, 3}));
  EXPECT_NE(refusal_of([&] { open_idx(path, folder.path() / "l"); }).find("height"), std::string::npos);
}

TEST(IdxFiles, OfMnistAreThePublishedOnes) {
  CALDERA_REQUIRE_DATA(path, "mnist");
  const ImageData data = open_image_data(path);
  EXPECT_EQ(data.form, "IDX");
  EXPECT_EQ(data.train->size(), 60000);
  EXPECT_EQ(data.test->size(), 10000);
  // The first labels, as everyone knows them; the first image's pixels have the mean 35.108 of 255.
  const std::vector<std::int64_t> want{5, 0, 4, 1, 9, 2, 1, 3, 1, 4};
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(data.train->label(i), want[static_cast<std::size_t>(i)]);
  double sum = 0;
  for (const float pixel : data.train->image(0).pixels) sum += 255 * static_cast<double>(pixel);
  EXPECT_NEAR(sum, 27525, 1);
}

TEST(GzipFiles, AreRefusedAtEachCutAndBySum) {
  CALDERA_REQUIRE_DATA(path, "mnist/t10k-labels-idx1-ubyte.gz");
  std::ifstream in(path, std::ios::binary);
  const Bytes right((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const testing::TempFolder folder;
  const fs::path copy = folder.path() / "labels.gz";
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    Bytes wrong = right;
    if (trial % 2 == 0)
      wrong.resize(random() % right.size());
    else
      wrong[10 + random() % (right.size() - 10)] ^= static_cast<std::uint8_t>(1U << random() % 8);
    write_bytes(copy, wrong);
    EXPECT_NE(refusal_of([&] { read_idx(copy); }), "") << trial;
  }
  write_bytes(copy, right);
  EXPECT_EQ(read_idx(copy).values.size(), 10000U);
  std::ofstream(folder.path() / "SHA256SUMS") << std::string(64, '0') << "  labels.gz\n";
  EXPECT_NE(refusal_of([&] { read_idx(copy); }).find("SHA-256"), std::string::npos);
  std::ofstream(folder.path() / "SHA256SUMS")
      << Sha256().add(std::as_bytes(std::span(right))).hex() << "  labels.gz\n";
  EXPECT_EQ(read_idx(copy).values.size(), 10000U);
}

Bytes cifar_records(std::size_t head, std::size_t count) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < head; ++k) bytes.push_back(static_cast<std::uint8_t>(i + k));
    for (std::size_t k = 0; k < 3072; ++k) bytes.push_back(static_cast<std::uint8_t>(k / 1024 * 100 + i));
  }
  return bytes;
}

TEST(CifarFiles, HaveTheirPixelsAndLabels) {
  const testing::TempFolder folder;
  write_bytes(folder.path() / "data_batch_1.bin", cifar_records(1, 5));
  write_bytes(folder.path() / "test_batch.bin", cifar_records(1, 2));
  const ImageData ten = open_image_data(folder.path());
  EXPECT_EQ(ten.form, "CIFAR-10");
  EXPECT_EQ(ten.train->size(), 5);
  EXPECT_EQ(ten.test->size(), 2);
  EXPECT_EQ(ten.train->label(3), 3);
  EXPECT_EQ(ten.train->class_names()[3], "cat");
  EXPECT_FLOAT_EQ(ten.train->image(3).at(1, 31, 31), 103.0F / 255);
  const testing::TempFolder other;
  write_bytes(other.path() / "train.bin", cifar_records(2, 20));
  const ImageData hundred = open_image_data(other.path());
  EXPECT_EQ(hundred.form, "CIFAR-100");
  EXPECT_EQ(hundred.train->size() + hundred.test->size(), 20);
  EXPECT_EQ(hundred.train->classes(), 100);
  EXPECT_EQ(open_cifar({other.path() / "train.bin"}, CifarKind::cifar100)->label(4), 5);  // the fine label
}

TEST(CifarFiles, AreRefusedWithOtherLengthsAndLabels) {
  const testing::TempFolder folder;
  const fs::path path = folder.path() / "data_batch_1.bin";
  const Bytes right = cifar_records(1, 2);
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, right.size() - 1, right.size() + 1}) {
    Bytes wrong = right;
    wrong.resize(length);
    write_bytes(path, wrong);
    EXPECT_NE(refusal_of([&] { open_image_data(folder.path()); }), "") << length;
  }
  Bytes wrong = right;
  wrong[3073] = 10;
  write_bytes(path, wrong);
  EXPECT_NE(refusal_of([&] { open_image_data(folder.path()); }).find("label 10 of record 1"),
            std::string::npos);
}

/// The bytes that hexadecimal digits stand for.
Bytes from_hex(const std::string& digits) {
  Bytes bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

// Written by Pillow 9.4: 2 x 3 pixels of (10 i, 20 i, 255 - 30 i) for i of 0 to 5, and 8 x 8 of the grey 77.
const Bytes kPng = from_hex(
    "89504e470d0a1a0a0000000d49484452000000030000000208020000001216f14d0000001849444154789c636460f8cf"
    "25f2884be4118b9ccd32080b003757060598460b170000000049454e44ae426082");
const Bytes kJpeg = from_hex(
    "ffd8ffe000104a46494600010100000100010000ffdb004300080606070605080707070909080a0c140d0c0b0b0c1912"
    "130f141d1a1f1e1d1a1c1c20242e2720222c231c1c2837292c30313434341f27393d38323c2e333432ffc0000b080008"
    "000801011100ffc40014000100000000000000000000000000000006ffc4001410010000000000000000000000000000"
    "0000ffda0008010100003f0018ffd9");

// Inks (40, 160, 90, 51) in 8 x 8 pixels, by Pillow 9.4 at quality 50, which reads them as the colour (173,
// 75, 133).
const Bytes kInks = from_hex(
    "ffd8ffee000e41646f626500640000000000ffdb004300100b0c0e0c0a100e0d0e1211101318281a181616183123251d"
    "283a333d3c3933383740485c4e404457453738506d51575f626768673e4d71797064785c656763ffc000140800080008"
    "044311004d11005911004b1100ffc4001500010100000000000000000000000000000506ffc400141001000000000000"
    "00000000000000000000ffda000e0443004d0059004b00003f00ac1c4d4cffd9");

/// Reads what is given or gives nothing for a library that is not there.
bool can_read(const Bytes& bytes) {
  return refusal_of([&] { decode_image(bytes, "x"); }).empty();
}

TEST(ImageFiles, HaveTheirPixels) {
  if (!can_read(kPng) || !can_read(kJpeg)) GTEST_SKIP() << "built without libpng or libjpeg";
  const Image png = decode_image(kPng, "x.png");
  ASSERT_EQ(png.height, 2);
  ASSERT_EQ(png.width, 3);
  EXPECT_FLOAT_EQ(png.at(0, 1, 2), 50.0F / 255);
  EXPECT_FLOAT_EQ(png.at(1, 1, 0), 60.0F / 255);
  EXPECT_FLOAT_EQ(png.at(2, 0, 1), 225.0F / 255);
  EXPECT_EQ(decode_image(kPng, "x.png", {.channels = 1}).channels, 1);
  const Image jpeg = decode_image(kJpeg, "x.jpg");
  ASSERT_EQ(jpeg.pixels.size(), 3U * 8 * 8);
  for (const float pixel : jpeg.pixels) EXPECT_NEAR(pixel, 77.0F / 255, 1.5F / 255);
  const Image inks = decode_image(kInks, "x.jpg"), grey = decode_image(kInks, "x.jpg", {.channels = 1});
  ASSERT_EQ(inks.pixels.size(), 3U * 8 * 8);
  const float want[] = {173, 75, 133};
  for (std::int64_t c = 0; c < 3; ++c) EXPECT_NEAR(inks.at(c, 3, 5) * 255, want[c], 1.5F) << c;
  EXPECT_NEAR(grey.at(0, 3, 5) * 255, 111, 1.5F);  // 0.299 R + 0.587 G + 0.114 B
  EXPECT_NE(refusal_of([&] { decode_image(kPng, "x", {.most_pixels = 5}); }).find("3 x 2"),
            std::string::npos);
}

TEST(ImageFiles, AreRefusedAtEachCutAndHeldToTheirSizeWithAnyByte) {
  if (!can_read(kPng) || !can_read(kJpeg)) GTEST_SKIP() << "built without libpng or libjpeg";
  for (const Bytes& right : {kPng, kJpeg, kInks}) {
    // Two bytes may miss at the end: they say no more than that it is one.
    for (std::size_t length = 0; length + 12 < right.size(); ++length)
      EXPECT_FALSE(can_read(Bytes(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(length))))
          << length;
    for (std::size_t at = 0; at < right.size(); ++at) {
      for (const std::uint8_t flip : {1, 16, 128, 255}) {
        Bytes wrong = right;
        wrong[at] ^= flip;
        try {
          const Image image = decode_image(wrong, "x", {.most_pixels = 1 << 22});
          EXPECT_EQ(static_cast<std::int64_t>(image.pixels.size()), 3 * image.height * image.width);
        } catch (const FileError&) {  // as it should be
        }
      }
    }
  }
}

TEST(ImageFolders, HaveAClassAFolder) {
  if (!can_read(kPng) || !can_read(kJpeg)) GTEST_SKIP() << "built without libpng or libjpeg";
  const testing::TempFolder folder;
  for (const char* name : {"train/cat", "train/ant", "test/ant", "test/cat"})
    fs::create_directories(folder.path() / name);
  write_bytes(folder.path() / "train/cat/1.png", kPng);
  write_bytes(folder.path() / "train/cat/2.JPG", kJpeg);
  write_bytes(folder.path() / "train/ant/3.jpeg", kJpeg);
  write_bytes(folder.path() / "test/cat/4.png", kPng);
  write_bytes(folder.path() / "test/ant/5.jpg", kJpeg);
  const ImageData data = open_image_data(folder.path());
  EXPECT_EQ(data.form, "folders");
  EXPECT_EQ(data.train->class_names(), (std::vector<std::string>{"ant", "cat"}));
  EXPECT_EQ(data.train->size(), 3);
  EXPECT_EQ(data.train->label(1), 1);
  EXPECT_EQ(data.train->image(1).width, 3);
  write_bytes(folder.path() / "train/cat/1.png", Bytes(10));
  EXPECT_NE(refusal_of([&] { data.train->image(1); }).find("1.png"), std::string::npos);
}

// 8 x 2^30 x 2^31 is 2^64, which in 64 bits is the number of bytes behind the header: none.
TEST(IdxFiles, WhoseExtentsOverflowAreRefused) {
  const testing::TempFolder folder;
  write_bytes(folder / "i", idx_file({8, 1U << 30, 1U << 31}, {}));
  write_bytes(folder / "l", idx_file({8}, Bytes(8)));
  EXPECT_NE(refusal_of([&] { open_idx(folder / "i", folder / "l"); }).find("do not give the 0 bytes"),
            std::string::npos);
}

// What would only be found out after the training.
TEST(ImageFiles, ThatCannotBeTrainedOnAreRefused) {
  const testing::TempFolder folder;
  const auto write = [&](const char* part, std::uint32_t side, const Bytes& labels) {
    const auto count = static_cast<std::uint32_t>(labels.size());
    write_bytes(folder.path() / fmt::format("{}-images-idx3-ubyte", part),
                idx_file({count, side, side}, Bytes(count * side * side)));
    write_bytes(folder.path() / fmt::format("{}-labels-idx1-ubyte", part), idx_file({count}, labels));
  };
  write("train", 4, {0, 1, 2});
  write("t10k", 3, {0, 1});
  EXPECT_NE(
      refusal_of([&] { open_image_data(folder.path()); }).find("1 x 4 x 4 for training and of 1 x 3 x 3"),
      std::string::npos);
  write("t10k", 4, {});
  EXPECT_NE(refusal_of([&] { open_image_data(folder.path()); }).find("no images for testing"),
            std::string::npos);
  const testing::TempFolder pictures;
  fs::create_directories(pictures.path() / "cat");
  for (const char* name : {"1.png", "2.png", "3.png"}) write_bytes(pictures.path() / "cat" / name, kPng);
  EXPECT_NE(refusal_of([&] { open_image_data(pictures.path()); }).find("one class, 'cat'"),
            std::string::npos);
}

TEST(ImageFiles, WithoutImagesAreRefused) {
  EXPECT_NE(refusal_of([&] { decode_image({}, "empty.png"); }).find("empty.png"), std::string::npos);
  const testing::TempFolder folder;
  EXPECT_NE(refusal_of([&] { open_image_data(folder.path()); }).find("a folder for each class"),
            std::string::npos);
  EXPECT_NE(refusal_of([&] { open_image_data(folder.path() / "none"); }).find("no such folder"),
            std::string::npos);
}

}  // namespace
}  // namespace caldera::vision
