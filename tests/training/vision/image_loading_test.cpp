// Transforms, samplers, the loader and metrics, beside numbers worked out by hand or by Pillow and PyTorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "engine/base/error.h"
#include "training/vision/data/data_loader.h"
#include "training/vision/data/samplers.h"
#include "training/vision/data/transforms.h"
#include "training/vision/train/image_metrics.h"
#include "training/vision/train/image_report.h"

namespace caldera::vision {
namespace {

Image counting(std::int64_t channels, std::int64_t height, std::int64_t width) {
  Image image = Image::zeros(channels, height, width);
  std::iota(image.pixels.begin(), image.pixels.end(), 0.0F);
  return image;
}

Image applied(const Transform& transform, Image image, std::uint64_t seed = 1) {
  rl::Random random(seed);
  transform(image, random);
  return image;
}

TEST(ImageTransforms, ResizeAsPillowDoes) {
  // Image.fromarray(float32 0..5 of 2 x 3).resize((6, 4), BILINEAR), Pillow 9.4: the first row and the last.
  const Image up = applied(resize(4, 6), counting(1, 2, 3));
  const std::vector<float> first{0, 0.25F, 0.75F, 1.25F, 1.75F, 2};
  for (std::int64_t x = 0; x < 6; ++x) {
    EXPECT_NEAR(up.at(0, 0, x), first[static_cast<std::size_t>(x)], 1e-6);
    EXPECT_NEAR(up.at(0, 3, x), first[static_cast<std::size_t>(x)] + 3, 1e-6);
  }
  // Shrunk to a half each pixel is a triangle over four: (1, 3, 3, 1) / 8, cut and scaled at the ends.
  const Image down = applied(resize(1, 2), counting(1, 1, 4));
  EXPECT_NEAR(down.at(0, 0, 0), (3 * 0 + 3 * 1 + 1 * 2) / 7.0, 1e-6);
  EXPECT_NEAR(down.at(0, 0, 1), (1 * 1 + 3 * 2 + 3 * 3) / 7.0, 1e-6);
  EXPECT_EQ(applied(resize_shorter(4), counting(1, 8, 12)).width, 6);
}

TEST(ImageTransforms, CropFlipAndRotate) {
  const Image image = counting(1, 3, 4);
  EXPECT_EQ(applied(random_flip(1), image).pixels,
            (std::vector<float>{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8}));
  EXPECT_EQ(applied(center_crop(1, 2), image).pixels, (std::vector<float>{5, 6}));
  EXPECT_EQ(applied(center_crop(3, 6), image).pixels,
            (std::vector<float>{0, 0, 1, 2, 3, 0, 0, 4, 5, 6, 7, 0, 0, 8, 9, 10, 11, 0}));
  std::set<float> corners;
  for (std::uint64_t seed = 0; seed < 400; ++seed)
    corners.insert(applied(random_crop(2, 2, 1), image, seed).at(0, 1, 1));
  EXPECT_EQ(corners.size(), 12U);  // each pixel is the lower right corner of a crop
  EXPECT_THROW(applied(random_crop(4, 4), image), ValueError);
  const Image quarter = applied(random_rotation(0), counting(2, 3, 3));
  EXPECT_EQ(quarter.pixels, counting(2, 3, 3).pixels);
  const Image grey = applied(random_rotation(180), counting(1, 5, 5));
  EXPECT_NEAR(grey.at(0, 2, 2), 12, 1e-4);  // the centre stays
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Image part = applied(random_resized_crop(2, 3), counting(1, 9, 9), seed);
    EXPECT_EQ(part.pixels.size(), 6U);
    EXPECT_LE(*std::ranges::max_element(part.pixels), 80.0F);
  }
}

TEST(ImageTransforms, NormaliseEraseAndColour) {
  const Image image = applied(normalize({1, 2}, {2, 4}), counting(2, 1, 2));
  EXPECT_EQ(image.pixels, (std::vector<float>{-0.5F, 0, 0, 0.25F}));
  EXPECT_THROW(normalize({1}, {0}), ValueError);
  EXPECT_THROW(applied(normalize({1, 2}, {1, 1}), counting(3, 1, 1)), ValueError);
  Image ones = Image::zeros(3, 20, 20);
  std::ranges::fill(ones.pixels, 0.5F);
  const Image erased = applied(random_erasing(1), ones);
  const auto zeros = std::ranges::count(erased.pixels, 0.0F);
  EXPECT_EQ(zeros % 3, 0);
  EXPECT_GE(zeros, 3 * 4);  // 2 % of 400, rounded sides
  EXPECT_LE(zeros, 3 * 150);
  EXPECT_EQ(applied(random_erasing(0), ones).pixels, ones.pixels);
  EXPECT_EQ(applied(color_jitter(0, 0, 0), ones).pixels, ones.pixels);
  // Grey of one brightness is its own mean and its own grey: only light changes it.
  const Image lit = applied(color_jitter(0.2, 1, 1), ones);
  EXPECT_GE(lit.pixels[0], 0.4F);
  EXPECT_LE(lit.pixels[0], 0.6F);
  EXPECT_NEAR(*std::ranges::min_element(lit.pixels), *std::ranges::max_element(lit.pixels), 1e-6);
}

ImageDatasetPtr numbered_images(std::int64_t count) {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    pixels.insert(pixels.end(), 4, static_cast<std::uint8_t>(i));
    labels.push_back(i % 4 == 0 ? 1 : 0);
  }
  return std::make_shared<MemoryImages>(1, 2, 2, pixels, labels, numbered_classes(2));
}

/// The numbers of the images of an epoch, batch by batch.
std::vector<std::vector<int>> epoch_of(DataLoader& loader, std::int64_t epoch) {
  std::vector<std::vector<int>> batches;
  loader.begin(epoch);
  while (const auto batch = loader.next()) {
    const std::vector<float> pixels = batch->images.to_vector<float>();
    batches.emplace_back();
    for (std::size_t i = 0; i < pixels.size(); i += 4)
      batches.back().push_back(static_cast<int>(std::lround(pixels[i] * 255)));
  }
  return batches;
}

TEST(DataLoaders, GiveTheSameWithAnyNumberOfWorkers) {
  const ImageDatasetPtr data = numbered_images(23);
  const auto jitter = [](Image& image, rl::Random& random) {
    image.pixels[0] += static_cast<float>(random.below(3)) * 30 / 255;
  };
  std::vector<std::vector<int>> first;
  for (const int workers : {0, 1, 3}) {
    DataLoader loader(data, {.batch_size = 5,
                             .shuffle = true,
                             .workers = workers,
                             .seed = 7,
                             .transform = jitter,
                             .device = Device::cpu()});
    EXPECT_EQ(loader.batches(), 5);
    const auto epoch = epoch_of(loader, 2);
    EXPECT_EQ(epoch.back().size(), 3U);
    if (first.empty()) first = epoch;
    EXPECT_EQ(epoch, first) << workers;
    EXPECT_NE(epoch_of(loader, 3), first);
  }
  DataLoader whole(data, {.batch_size = 5, .drop_last = true, .device = Device::cpu()});
  EXPECT_EQ(whole.batches(), 4);
  EXPECT_EQ(epoch_of(whole, 0)[1], (std::vector<int>{5, 6, 7, 8, 9}));
}

TEST(DataLoaders, HandOnWhatAnImageThrows) {
  const auto fails = [](Image& image, rl::Random& /*random*/) {
    if (image.pixels[0] > 11.5F / 255) throw ValueError("the twelfth");
  };
  DataLoader loader(numbered_images(20),
                    {.batch_size = 4, .workers = 2, .transform = fails, .device = Device::cpu()});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(loader.next());
  EXPECT_THROW(loader.next(), ValueError);
  EXPECT_THROW(DataLoader(numbered_images(3), {.batch_size = 4, .drop_last = true}), ValueError);
  const auto grows = [](Image& image, rl::Random& random) {
    image = applied(resize(1 + random.below(5), 3), image);
  };
  DataLoader ragged(numbered_images(20), {.batch_size = 20, .transform = grows, .device = Device::cpu()});
  EXPECT_THROW(ragged.next(), ShapeError);
}

TEST(DataLoaders, BlendImagesInPairs) {
  DataLoader loader(numbered_images(8), {.batch_size = 8, .mixup = 0.4, .device = Device::cpu()});
  const auto batch = loader.next();
  ASSERT_TRUE(batch->other_labels.defined());
  EXPECT_GE(batch->share, 0);
  EXPECT_LE(batch->share, 1);
  const std::vector<float> pixels = batch->images.to_vector<float>();
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(255 * pixels[4 * i],
                batch->share * static_cast<double>(i) + (1 - batch->share) * static_cast<double>(7 - i),
                1e-4);
}

TEST(Samplers, DrawByWeights) {
  const ImageDatasetPtr data = numbered_images(40);  // a quarter is of class 1
  const Sampler sampler = weighted(class_balance(*data), 4000, 3);
  std::int64_t of_one = 0;
  for (const std::int64_t index : sampler(0)) of_one += data->label(index);
  EXPECT_NEAR(static_cast<double>(of_one), 2000, 5 * 31.6);  // five standard errors of 4000 draws of a half
  EXPECT_EQ(sampler(1), sampler(1));
  EXPECT_NE(sampler(0), sampler(1));
  for (const std::int64_t index : weighted({0, 1, 0}, 50, 1)(0)) EXPECT_EQ(index, 1);
  EXPECT_THROW(weighted({0, 0}, 1, 1), ValueError);
  EXPECT_THROW(weighted({1, -1}, 1, 1), ValueError);
}

TEST(ImageMetrics, KnowNothingWhereThereAreNoNumbers) {
  ImageMetrics metrics({"a", "b", "c"});
  const float nan = std::nanf("");
  metrics.add(std::vector<float>{nan, nan, nan, 2, nan, 1}, std::vector<std::int32_t>{0, 1});
  EXPECT_EQ(metrics.top(2), 0);
  EXPECT_EQ(metrics.count(0, 0), 0);
  EXPECT_EQ(metrics.count(1, 0), 1);
  EXPECT_TRUE(std::isnan(metrics.loss()));
}

TEST(ImageMetrics, CountWhatWasSaid) {
  ImageMetrics metrics({"a", "b", "c"});
  const std::vector<float> logits{2, 1, 0, 0, 1, 3, 1, 1, 0, 0, 5, 1};
  const std::vector<std::int32_t> labels{0, 1, 1, 1};
  metrics.add(logits, labels);
  EXPECT_DOUBLE_EQ(metrics.accuracy(), 0.5);  // a tie goes to the first
  EXPECT_DOUBLE_EQ(metrics.top(2), 1);
  EXPECT_EQ(metrics.count(1, 2), 1);
  EXPECT_EQ(metrics.count(1, 0), 1);
  EXPECT_DOUBLE_EQ(metrics.recall(1), 1.0 / 3);
  EXPECT_DOUBLE_EQ(metrics.precision(0), 0.5);
  double loss = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    double sum = 0;
    for (std::size_t c = 0; c < 3; ++c) sum += std::exp(static_cast<double>(logits[3 * i + c]));
    loss += (std::log(sum) - static_cast<double>(logits[3 * i + static_cast<std::size_t>(labels[i])])) / 4;
  }
  EXPECT_NEAR(metrics.loss(), loss, 1e-12);
  EXPECT_THROW(metrics.add(logits, std::vector<std::int32_t>{0}), ShapeError);
  const std::string page = to_html({.title = "a </script> title", .metrics = metrics});
  EXPECT_EQ(page.find("a </script>"), std::string::npos);
}

}  // namespace
}  // namespace caldera::vision
