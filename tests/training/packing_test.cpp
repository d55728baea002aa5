// Packing: what is packed, what comes of resuming, and that losses and gradients are those of rows of their
// own.
#include "training/data/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "engine/autodiff/autodiff.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/devices.h"
#include "tests/training/objective_setup.h"
#include "training/data/batch_iterator.h"
#include "training/objectives/next_token.h"

namespace caldera {
namespace {

using testing::error_of;

TEST(Packing, EachSequenceIsInOneRowAndRowsAreFew) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t capacity = 1 + static_cast<std::int64_t>(random() % 100);
    std::vector<std::int64_t> lengths(random() % 60);
    for (std::int64_t& length : lengths) length = 1 + static_cast<std::int64_t>(random()) % capacity;
    const auto rows = pack(lengths, capacity);
    std::vector<int> seen(lengths.size(), 0);
    for (const auto& row : rows) {
      std::int64_t sum = 0;
      for (const std::int64_t i : row) {
        ++seen[static_cast<std::size_t>(i)];
        sum += lengths[static_cast<std::size_t>(i)];
      }
      EXPECT_LE(sum, capacity);
      EXPECT_GT(sum, 0);
    }
    EXPECT_EQ(std::ranges::count(seen, 1), std::ssize(seen));
    // Johnson's bound, by the fewest rows that there could be.
    const auto total = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
    std::int64_t halves = 0;
    for (const std::int64_t length : lengths) halves += 2 * length > capacity ? 1 : 0;
    const double fewest =
        std::max(std::ceil(total / static_cast<double>(capacity)), static_cast<double>(halves));
    EXPECT_LE(static_cast<double>(rows.size()), 1.5 * fewest + 1);
  }
  EXPECT_EQ(pack(std::vector<std::int64_t>{3, 5, 2, 4, 6}, 10),
            (std::vector<std::vector<std::int64_t>>{{4, 3}, {1, 0, 2}}));
  EXPECT_THROW(pack(std::vector<std::int64_t>{11}, 10), ValueError);
  EXPECT_THROW(pack(std::vector<std::int64_t>{0}, 10), ValueError);
}

TokenDataset words(int count, std::int64_t seq_len, unsigned seed) {
  std::mt19937 random(seed);
  ExampleSet set;
  for (int i = 0; i < count; ++i) {
    std::string prompt(random() % 4, 'p');
    std::string text;
    for (std::uint32_t n = 1 + random() % 9; n > 0; --n) text += static_cast<char>('a' + random() % 26);
    set.examples.push_back({.prompt = std::move(prompt), .text = std::move(text)});
  }
  return TokenDataset(set, ByteTokenizer(), {.seq_len = seq_len, .loss_on = LossOn::completion});
}

/// What the batch's sequences are, in any order: the inputs and targets of each.
std::multiset<std::vector<std::int32_t>> sequences_of(const Batch& batch) {
  std::multiset<std::vector<std::int32_t>> all;
  for (std::size_t row = 0; row < batch.lengths.size(); ++row) {
    auto at = static_cast<std::ptrdiff_t>(row) * batch.seq_len;
    for (const std::int64_t length : batch.lengths[row]) {
      std::vector<std::int32_t> one(batch.inputs.begin() + at, batch.inputs.begin() + at + length);
      one.push_back(batch.targets[static_cast<std::size_t>(at + length - 1)]);
      all.insert(std::move(one));
      at += length;
    }
  }
  return all;
}

TEST(PackedBatches, AnEpochHoldsEachExampleOnce) {
  const TokenDataset data = words(37, 24, 1);
  BatchIterator batches(data, 1, 5, Packing::best_fit);
  std::multiset<std::vector<std::int32_t>> seen, want;
  for (std::int64_t i = 0; i < batches.rows_per_epoch(); ++i) seen.merge(sequences_of(batches.next()));
  EXPECT_EQ(batches.position().epoch, 0U);
  for (std::int64_t i = 0; i < data.size(); ++i) want.emplace(data.tokens(i).begin(), data.tokens(i).end());
  EXPECT_EQ(seen, want);
  EXPECT_LT(batches.rows_per_epoch(), 30) << "rows hold several";
  batches.next();
  EXPECT_EQ(batches.position().epoch, 1U);
}

TEST(PackedBatches, ResumeEqualsUninterrupted) {
  const TokenDataset data = words(300, 24, 2);
  for (const std::int64_t rows : {1, 3}) {
    BatchIterator whole(data, rows, 9, Packing::best_fit);
    for (int i = 0; i < 120; ++i) {
      BatchIterator resumed(data, rows, 0, Packing::best_fit);
      resumed.restore(whole.position());
      const Batch want = whole.next(), got = resumed.next();
      ASSERT_EQ(got.inputs, want.inputs) << i;
      ASSERT_EQ(got.lengths, want.lengths);
      ASSERT_EQ(resumed.position(), whole.position());
    }
    EXPECT_GE(whole.position().epoch, rows == 1 ? 0U : 2U);
  }
}

TEST(PackedBatches, PairsAreRefused) {
  const TokenDataset pairs = testing::answer_pairs(4);
  EXPECT_CONTAINS(error_of<ValueError>([&] { BatchIterator(pairs, 1, 1, Packing::best_fit); }), "pairs");
}

class PackedTraining : public ::testing::TestWithParam<Device> {};
INSTANTIATE_TEST_SUITE_P(Devices, PackedTraining, ::testing::ValuesIn(testing::tested_devices()),
                         testing::device_test_name);

/// The oracle is the same sequences, one a row: 50 random sets, losses and the gradients of an adapter. They
/// are equal but for rounding: sums over tokens, and over the keys of a query, begin elsewhere.
TEST_P(PackedTraining, LossesAndGradientsAreThoseOfRowsOfTheirOwn) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  const bool on_cpu = GetParam().kind == DeviceKind::cpu;
  const auto in_f32 = testing::adapted_model(GetParam(), 0, 0.1);
  const auto in_f64 = testing::adapted_model(GetParam(), 0, 0.1);
  if (on_cpu) testing::compute_in_f64(*in_f64);
  const NextToken objective;
  // Norms of differences, beside those of what is expected: of the loss, and of the whole gradient.
  const auto compare = [&](CausalLM& model, const Batch& apart, const Batch& packed, double tolerance) {
    const ObjectiveModels models(model);
    std::vector<LazyTensor> inputs;
    for (const Parameter& p : model.trainable_parameters()) inputs.push_back(*p.tensor);
    const LazyTensor loss = objective.sums(models, apart).loss, other = objective.sums(models, packed).loss;
    EXPECT_NEAR(other.item<double>() / loss.item<double>(), 1, tolerance);
    const auto want = grad(loss, inputs), got = grad(other, inputs);
    double difference = 0, all = 0;
    for (std::size_t k = 0; k < want.size(); ++k) {
      difference += sum(square(got[k] - want[k])).item<double>();
      all += sum(square(want[k])).item<double>();
    }
    EXPECT_LE(std::sqrt(difference / all), tolerance);
  };
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const TokenDataset data = words(9, 32, 100 + seed);
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < data.size(); ++i) lengths.push_back(std::ssize(data.tokens(i)) - 1);
    const auto rows = pack(lengths, data.seq_len());
    ASSERT_LT(std::ssize(rows), data.size());
    const Batch apart = testing::whole(data), packed = data.packed_batch(rows);
    ASSERT_EQ(packed.counted(), apart.counted());
    compare(*in_f32, apart, packed, 1e-6);
    if (on_cpu) compare(*in_f64, apart, packed, 1e-13);
  }
}

}  // namespace
}  // namespace caldera
