#include "training/data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "lm/tokenizers/byte_tokenizer.h"
#include "lm/tokenizers/sources/load_tokenizer.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/test_data.h"
#include "training/data/batch_iterator.h"
#include "training/data/example_files.h"

namespace caldera {
namespace {

using testing::error_of;
using testing::TempFolder;
using Ids = std::vector<std::int32_t>;

ExampleSet texts(std::vector<std::string> list) {
  ExampleSet set;
  for (auto& text : list) set.examples.push_back({"", std::move(text)});
  return set;
}

/// One-letter examples a, b, c ...: the token after bos tells which example a row holds.
TokenDataset letters(int count, const Tokenizer& tokenizer) {
  std::vector<std::string> list;
  list.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) list.emplace_back(1, static_cast<char>('a' + i));
  return TokenDataset(texts(list), tokenizer, {.seq_len = 32});
}

std::string rows_of(const Batch& batch) {
  std::string rows;
  for (std::int64_t row = 0; row < batch.batch_size; ++row) {
    rows += static_cast<char>(batch.inputs[static_cast<std::size_t>(row * batch.seq_len + 1)]);
  }
  return rows;
}

TEST(LoadExamples, Jsonl) {
  const TempFolder folder;
  const auto set = load_examples(folder.put("d.jsonl",
                                            "{\"text\": \"one\\nline\", \"other\": 1}\r\n"
                                            "\n"
                                            "  {\"prompt\": \"p\", \"completion\": \"c\"}\n"
                                            "{\"text\": \"\"}\n"
                                            "{\"text\": \"last\"}"));
  EXPECT_FALSE(set.plain_text);
  ASSERT_EQ(set.examples.size(), 3u);
  EXPECT_EQ(set.examples[0].text, "one\nline");
  EXPECT_EQ(set.examples[1].prompt, "p");
  EXPECT_EQ(set.examples[1].text, "c");
  EXPECT_EQ(set.examples[2].text, "last");
}

TEST(LoadExamples, ErrorsNameFileAndLine) {
  const TempFolder folder;
  const auto error = [&](const std::string& content) {
    const auto path = folder.put("d.jsonl", content);
    return error_of<FileError>([&] { load_examples(path); });
  };
  const std::string ok = "{\"text\": \"x\"}\n";
  EXPECT_CONTAINS(error(ok + "{broken\n"), "d.jsonl:2: not valid JSON");
  EXPECT_CONTAINS(error(ok + "\n[1]\n"), "d.jsonl:3: a JSON object");
  EXPECT_CONTAINS(error(ok + "{\"text\": 3}"), "d.jsonl:2: field 'text'");
  EXPECT_CONTAINS(error(ok + "{\"prompt\": \"x\"}"),
                  "d.jsonl:2: the row is of another kind than the first one: prompts alone");
  EXPECT_CONTAINS(error("{\"completion\": \"x\"}"), "field 'prompt' is missing");
  EXPECT_CONTAINS(error("{\"prompt\": \"x\", \"completion\": []}"), "'completion'");
  EXPECT_CONTAINS(error("{\"messages\": []}"), "chat template");
  EXPECT_CONTAINS(error("{\"txt\": \"x\"}"), "none of the forms");
  EXPECT_CONTAINS(error("{\"text\": \"\xFF\"}"), "not valid JSON");
  EXPECT_CONTAINS(error("{\"text\": " + std::string(100'000, '[')), "nested deeper");
  EXPECT_CONTAINS(error(""), "empty");
  EXPECT_CONTAINS(error("\n \n"), "no example");
  EXPECT_CONTAINS(error("{\"text\": \"\"}"), "no example");
  EXPECT_CONTAINS(error_of<FileError>([&] { load_examples(folder / "gone.jsonl"); }), "gone.jsonl");
  EXPECT_CONTAINS(error_of<FileError>([&] { load_examples(folder.put("d.doc", "a,b")); }), ".jsonl, .json");
  EXPECT_CONTAINS(error("{\"text\": null}"), "field 'text' is null");
  EXPECT_CONTAINS(error(ok + "{\"text\": \"x\""), "d.jsonl:2: not valid JSON (byte 13: syntax error");
  EXPECT_CONTAINS(error_of<FileError>([&] { load_examples(folder.put("e.txt", "")); }), "empty");
}

TEST(LoadSplits, FoldersAndFiles) {
  const TempFolder folder;
  EXPECT_CONTAINS(error_of<FileError>([&] { load_splits(folder.path()); }), "train.jsonl");
  folder.put("train.txt", "hello");
  auto splits = load_splits(folder.path());
  EXPECT_TRUE(splits.train.at(0).plain_text);
  EXPECT_EQ(splits.train.at(0).examples.at(0).text, "hello");
  EXPECT_TRUE(splits.valid.empty());
  EXPECT_TRUE(splits.test.empty());
  folder.put("valid.jsonl", "{\"text\": \"v\"}");
  folder.put("test.txt", "t");
  splits = load_splits(folder.path());
  EXPECT_EQ(splits.valid.at(0).examples.at(0).text, "v");
  EXPECT_TRUE(splits.test.empty()) << "nobody asked for it";
  splits = load_splits(folder.path(), {}, {.train = false, .valid = false, .test = true});
  EXPECT_EQ(splits.test.at(0).examples.at(0).text, "t");
  EXPECT_TRUE(splits.train.empty());
  splits = load_splits(folder / "valid.jsonl");
  EXPECT_EQ(splits.train.at(0).examples.at(0).text, "v");
  EXPECT_TRUE(splits.valid.empty());
  folder.put("train.jsonl", "{\"text\": \"x\"}");
  EXPECT_CONTAINS(error_of<FileError>([&] { load_splits(folder.path()); }), "both");
  EXPECT_CONTAINS(error_of<FileError>([&] { load_splits(folder / "gone"); }), "gone");
}

TEST(TokenDataset, BatchesHoldExactlyTheTokens) {
  const ByteTokenizer tokenizer;
  const TokenDataset data(texts({"ab", "xyzw"}), tokenizer, {.seq_len = 5});
  ASSERT_EQ(data.size(), 2);
  EXPECT_TRUE(std::ranges::equal(data.tokens(0), Ids{256, 'a', 'b', 257}));
  EXPECT_TRUE(std::ranges::equal(data.tokens(1), Ids{256, 'x', 'y', 'z', 'w', 257}));
  EXPECT_EQ(data.max_token_id(), 257);
  EXPECT_EQ(data.counted(), 8);
  const std::vector<std::int64_t> indices{0, 1};
  const auto batch = data.batch(indices);
  EXPECT_EQ(batch.batch_size, 2);
  EXPECT_EQ(batch.seq_len, 5) << "rounding up stops at seq_len";
  EXPECT_EQ(batch.inputs, (Ids{256, 'a', 'b', 0, 0, 256, 'x', 'y', 'z', 'w'}));
  EXPECT_EQ(batch.targets, (Ids{'a', 'b', 257, 0, 0, 'x', 'y', 'z', 'w', 257}));
  EXPECT_EQ(batch.weights, (std::vector<float>{1, 1, 1, 0, 0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(batch.counted(), 8);
  EXPECT_THROW((void)data.tokens(2), ValueError);
  EXPECT_THROW((void)data.tokens(-1), ValueError);
}

TEST(TokenDataset, WidthsAreMultiplesOf16) {
  const ByteTokenizer tokenizer;
  // bos + n bytes + eos: n + 1 inputs.
  const TokenDataset data(
      texts({std::string(1, 'a'), std::string(15, 'b'), std::string(16, 'c'), std::string(40, 'd')}),
      tokenizer, {.seq_len = 50});
  const auto width = [&](std::vector<std::int64_t> indices) { return data.batch(indices).seq_len; };
  EXPECT_EQ(width({0}), 16);
  EXPECT_EQ(width({1}), 16);
  EXPECT_EQ(width({2}), 32);
  EXPECT_EQ(width({0, 2}), 32);
  EXPECT_EQ(width({3}), 48);
  EXPECT_EQ(data.batch(std::vector<std::int64_t>{2}).inputs.size(), 32u);
}

TEST(TokenDataset, TruncatesAndSkips) {
  const ByteTokenizer tokenizer;
  const TokenDataset data(texts({"abcdefgh", "a"}), tokenizer, {.seq_len = 4});
  EXPECT_TRUE(std::ranges::equal(data.tokens(0), Ids{256, 'a', 'b', 'c', 'd'}));
  EXPECT_EQ(data.truncated(), 1);
  EXPECT_EQ(data.skipped(), 0);
  const ByteTokenizer plain(false);  // no bos, no eos: one byte predicts nothing
  const TokenDataset some(texts({"a", "bc"}), plain, {.seq_len = 4});
  EXPECT_EQ(some.size(), 1);
  EXPECT_EQ(some.skipped(), 1);
  EXPECT_CONTAINS(error_of<ValueError>([&] { TokenDataset(texts({"a"}), plain, {.seq_len = 4}); }),
                  "predict");
  EXPECT_CONTAINS(error_of<ValueError>([&] { TokenDataset(texts({"ab"}), plain, {.seq_len = 0}); }),
                  "sequence length");
}

TEST(TokenDataset, PromptsCanBeMasked) {
  const ByteTokenizer tokenizer;
  ExampleSet set;
  set.examples.push_back({"pq", "xy"});
  set.examples.push_back({"", "no"});
  set.examples.push_back({"a prompt that fills everything", "lost"});
  const TokenDataset masked(set, tokenizer, {.seq_len = 16, .loss_on = LossOn::completion});
  ASSERT_EQ(masked.size(), 2);
  EXPECT_EQ(masked.skipped(), 1) << "nothing is left to predict in the third";
  const auto batch = masked.batch(std::vector<std::int64_t>{0, 1});
  ASSERT_EQ(batch.seq_len, 16);
  EXPECT_EQ(Ids(batch.targets.begin(), batch.targets.begin() + 6), (Ids{'p', 'q', 'x', 'y', 257, 0}));
  EXPECT_EQ(std::vector<float>(batch.weights.begin(), batch.weights.begin() + 6),
            (std::vector<float>{0, 0, 1, 1, 1, 0}));
  EXPECT_EQ(std::vector<float>(batch.weights.begin() + 16, batch.weights.begin() + 20),
            (std::vector<float>{1, 1, 1, 0}));
  EXPECT_EQ(masked.counted(), 6);

  const TokenDataset open(set, tokenizer, {.seq_len = 16, .loss_on = LossOn::usual});
  EXPECT_EQ(open.size(), 3);
  EXPECT_EQ(open.counted(), 5 + 3 + 16);
}

/// Tokens of two characters, so that a token can reach from the prompt into the text; says it has no bos or
/// eos.
class PairTokenizer final : public Tokenizer {
 public:
  Ids encode(std::string_view text, bool) const override {
    Ids ids;
    for (std::size_t i = 0; i < text.size(); i += 2) {
      ids.push_back(text[i] * 256 + (i + 1 < text.size() ? text[i + 1] : 0));
    }
    return ids;
  }
  std::string decode(std::span<const std::int32_t>, bool) const override { return {}; }
  std::int64_t vocab_size() const override { return 65536; }
  std::optional<std::int32_t> bos_id() const override { return {}; }
  std::optional<std::int32_t> eos_id() const override { return {}; }
};

TEST(TokenDataset, TokensAcrossThePromptsEndCountAsText) {
  const PairTokenizer tokenizer;
  ExampleSet set;
  set.examples.push_back({"abcde", "fgh"});  // ab cd ef gh; the prompt alone: ab cd e
  const TokenDataset data(set, tokenizer, {.seq_len = 16, .loss_on = LossOn::completion});
  const auto batch = data.batch(std::vector<std::int64_t>{0});
  EXPECT_EQ(std::vector<float>(batch.weights.begin(), batch.weights.begin() + 4),
            (std::vector<float>{0, 1, 1, 0}));
}

TEST(TokenDataset, PlainTextIsCutIntoWindowsThatPredictEachTokenOnce) {
  const ByteTokenizer tokenizer;
  for (int length = 1; length <= 40; ++length) {
    std::string text;
    for (int i = 0; i < length; ++i) text += static_cast<char>('0' + i);
    ExampleSet set{.plain_text = true, .examples = {{"", text}}};
    const TokenDataset data(set, tokenizer, {.seq_len = 7});
    std::string predicted;
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const auto tokens = data.tokens(i);
      ASSERT_GE(tokens.size(), 2u);
      ASSERT_LE(tokens.size(), 8u);
      for (const auto id : tokens.subspan(1)) predicted += static_cast<char>(id);
    }
    EXPECT_EQ(predicted, text);
    EXPECT_EQ(data.counted(), length);
  }
}

TEST(BatchIterator, EveryEpochIsAPermutation) {
  const ByteTokenizer tokenizer;
  const auto data = letters(12, tokenizer);
  BatchIterator batches(data, 4, 1);
  EXPECT_EQ(batches.batches_per_epoch(), 3);
  std::set<std::string> orders;
  for (int epoch = 0; epoch < 5; ++epoch) {
    EXPECT_EQ(batches.position().epoch + (batches.position().index == 12 ? 1 : 0),
              static_cast<unsigned>(epoch));
    std::string order;
    for (int i = 0; i < 3; ++i) order += rows_of(batches.next());
    orders.insert(order);
    std::ranges::sort(order);
    EXPECT_EQ(order, "abcdefghijkl");
  }
  EXPECT_EQ(orders.size(), 5u) << "each epoch has its own order";
}

TEST(BatchIterator, OrderDependsOnTheSeedAlone) {
  const ByteTokenizer tokenizer;
  const auto data = letters(20, tokenizer);
  const auto order = [&](std::uint64_t seed) {
    BatchIterator batches(data, 5, seed);
    std::string rows;
    for (int i = 0; i < 8; ++i) rows += rows_of(batches.next());
    return rows;
  };
  EXPECT_EQ(order(42), order(42));
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) orders.insert(order(seed));
  EXPECT_EQ(orders.size(), 50u);
  // Pinned, so that a change of the generator (which would change every training run) is noticed.
  EXPECT_EQ(order(42).substr(0, 20), "rosdhqgamibltpcnjfek");
}

TEST(BatchIterator, ShufflesAreUniform) {
  const ByteTokenizer tokenizer;
  const auto data = letters(3, tokenizer);
  std::map<std::string, int> counts;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) ++counts[rows_of(BatchIterator(data, 3, seed).next())];
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts)
    EXPECT_NEAR(count, 1000, 150) << order;  // five standard deviations
}

TEST(BatchIterator, ResumeEqualsUninterrupted) {
  const ByteTokenizer tokenizer;
  const auto data = letters(7, tokenizer);
  BatchIterator whole(data, 3, 9);
  std::vector<std::string> expected;
  std::vector<BatchPosition> positions{whole.position()};
  for (int i = 0; i < 20; ++i) {
    expected.push_back(rows_of(whole.next()));
    positions.push_back(whole.position());
  }
  for (std::size_t at = 0; at < expected.size(); ++at) {
    BatchIterator resumed(data, 3, 12345);
    resumed.restore(positions[at]);
    for (std::size_t i = at; i < expected.size(); ++i) ASSERT_EQ(rows_of(resumed.next()), expected[i]);
    EXPECT_EQ(resumed.position(), whole.position());
  }
  const auto other = letters(8, tokenizer);
  BatchIterator wrong(other, 3, 9);
  EXPECT_CONTAINS(error_of<ValueError>([&] { wrong.restore(positions[3]); }), "does not fit");
  auto bad = positions[0];
  bad.index = 8;
  EXPECT_THROW(whole.restore(bad), ValueError);
}

TEST(BatchIterator, FewerExamplesThanRows) {
  const ByteTokenizer tokenizer;
  const auto data = letters(3, tokenizer);
  BatchIterator batches(data, 8, 4);
  const auto batch = batches.next();
  EXPECT_EQ(batch.batch_size, 8);
  const auto rows = rows_of(batch);
  for (const char c : {'a', 'b', 'c'}) EXPECT_GE(std::ranges::count(rows, c), 2);
  EXPECT_EQ(batches.position().epoch, 2u);
  EXPECT_EQ(batches.position().index, 2u);
  EXPECT_CONTAINS(error_of<ValueError>([&] { BatchIterator(data, 0, 1); }), "batch size");
}

TEST(BatchesForEvaluation, CoverEverythingOnceInOrder) {
  const ByteTokenizer tokenizer;
  const auto data = letters(10, tokenizer);
  const auto batches = batches_for_evaluation(data, 4);
  ASSERT_EQ(batches.size(), 3u);
  std::string rows;
  std::int64_t counted = 0;
  for (const auto& batch : batches) {
    rows += rows_of(batch);
    counted += batch.counted();
  }
  EXPECT_EQ(rows, "abcdefghij");
  EXPECT_EQ(counted, data.counted());
  EXPECT_EQ(batches[2].batch_size, 2);
  EXPECT_EQ(batches_for_evaluation(data, 4, 2).size(), 2u);
  EXPECT_EQ(batches_for_evaluation(data, 4, 0).size(), 0u);
  EXPECT_EQ(batches_for_evaluation(data, 100).size(), 1u);
  EXPECT_THROW(batches_for_evaluation(data, 0), ValueError);
}

TEST(TokenDataset, RealData) {
  CALDERA_REQUIRE_DATA(dir, "wikisql");
  CALDERA_REQUIRE_DATA(model, "stories260K");
  const auto splits = load_splits(dir, {}, {.test = true});
  const auto tokenizer = load_tokenizer(model);
  ASSERT_EQ(splits.valid.size(), 1U);
  ASSERT_EQ(splits.test.size(), 1U);
  const ExampleSet& train = splits.train.at(0);
  EXPECT_GT(train.examples.size(), splits.valid[0].examples.size());
  const TokenDataset data(splits.train, *tokenizer, {.seq_len = 256});
  EXPECT_EQ(data.size(), static_cast<std::int64_t>(train.examples.size()));
  EXPECT_LT(data.max_token_id(), 512);
  EXPECT_EQ(data.tokens(0)[0], 1);
  const std::string text = tokenizer->decode(data.tokens(0));
  EXPECT_TRUE(train.examples[0].text.starts_with(text));
  BatchIterator batches(data, 4, 0);
  for (int i = 0; i < 50; ++i) {
    const auto batch = batches.next();
    ASSERT_EQ(batch.seq_len % 16, 0);
    ASSERT_LE(batch.seq_len, 256);
    ASSERT_GT(batch.counted(), 0);
  }
}

}  // namespace
}  // namespace caldera
