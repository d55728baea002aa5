// Streams: what they read is what the readers of whole files read, in an order that takes no memory and that
// can be gone on with anywhere.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/devices.h"
#include "tests/support/memory_watch.h"
#include "tests/support/temp_folder.h"
#include "training/data/files/data_file.h"
#include "training/data/stream/permutation.h"
#include "training/data/stream/row_index.h"
#include "training/data/stream/streamed_dataset.h"

namespace caldera {
namespace {

using testing::error_of;
using testing::TempFolder;

TEST(Permutation, HoldsEachNumberOnce) {
  for (const std::int64_t size : {1, 2, 3, 17, 4097, 65536, 65537, 200001}) {
    for (const std::uint64_t epoch : {0, 1}) {
      const detail::Permutation order(size, 7, epoch);
      std::vector<int> seen(static_cast<std::size_t>(size), 0);
      for (std::int64_t i = 0; i < size; ++i) ++seen.at(static_cast<std::size_t>(order[i]));
      EXPECT_EQ(std::ranges::count(seen, 1), size);
    }
  }
}

// Where two numbers that follow each other land does not depend on one another: of size n, the distances are
// n / 3 on average with a deviation of n / sqrt(18), and each tenth of the order has a tenth of each tenth.
TEST(Permutation, ALongOneHasNoOrderLeft) {
  constexpr std::int64_t kSize = 300000;
  for (const std::uint64_t seed : {0, 1, 2}) {
    const detail::Permutation order(kSize, seed, seed / 2);
    double distances = 0;
    std::map<std::pair<std::int64_t, std::int64_t>, int> cells;
    for (std::int64_t i = 0; i < kSize; ++i) {
      if (i > 0) distances += std::abs(static_cast<double>(order[i] - order[i - 1]));
      ++cells[{i * 10 / kSize, order[i] * 10 / kSize}];
    }
    EXPECT_NEAR(distances / kSize, kSize / 3.0, 5 * kSize / std::sqrt(18.0 * kSize));
    double chi_square = 0;  // of 81 degrees of freedom: above 150 once in 200,000 times
    for (const auto& [cell, count] : cells) chi_square += (count - 3000.0) * (count - 3000.0) / 3000;
    EXPECT_LT(chi_square, 150);
  }
}

/// Fields of all that makes records hard to find; some longer than a piece of the file.
std::string random_csv(unsigned seed, int records) {
  std::mt19937 random(seed);
  std::string text = "text,\"a\nb\"\r\n";
  const char* const fields[] = {
      "plain", "", "\"quoted\"", "\"a,b\"", "\"line\nend\"", "\"twice \"\" quoted\"", "in\"side", "\"\r\n\""};
  const char* const ends[] = {"\n", "\r\n", "\r"};
  for (int i = 0; i < records; ++i) {
    if (random() % 200 == 0)
      text += '"' + std::string(random() % 200000, "x\n"[random() % 2]) + '"';
    else
      text += fields[random() % 8];
    text += std::string(",") + fields[random() % 8];
    if (i + 1 < records || random() % 2 == 0) text += ends[random() % 3];
  }
  return text;
}

std::vector<detail::DataRow> rows_of(const detail::RowReaderKind& kind, const std::string& text,
                                     const detail::TextOrigin& origin) {
  std::vector<detail::DataRow> rows;
  const auto reader = kind.make(text, origin);
  for (detail::DataRow row; reader->next(row);) rows.push_back(row);
  return rows;
}

TEST(RowIndex, FindsTheRowsThatTheReaderOfWholeFilesReads) {
  const TempFolder temp;
  const detail::RowReaderKind kind = detail::csv_rows();
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const std::string text = random_csv(seed, 3000);
    const detail::RowIndex index(temp.put("rows.csv", text), kind.split, true);
    const std::vector<detail::DataRow> expected = rows_of(kind, text, {.path = "f"});
    EXPECT_EQ(index.bytes(), std::ssize(text));
    std::size_t found = 0;
    for (std::int64_t row = 0; row < index.size(); ++row) {
      const detail::IndexedRow read = index.read(row);
      EXPECT_EQ(text.substr(static_cast<std::size_t>(read.offset), read.text.size()), read.text);
      // Its own line, which the reader of the whole file counts too. (Lone returns are no lines to either.)
      for (const detail::DataRow& one :
           rows_of(kind, index.header() + read.text,
                   {.path = "f", .line = read.line - std::ranges::count(index.header(), '\n')})) {
        ASSERT_LT(found, expected.size());
        ASSERT_EQ(one.json, expected[found].json) << "seed " << seed << ", row " << row;
        ++found;
      }
    }
    EXPECT_EQ(found, expected.size());
  }
}

TEST(RowIndex, LinesAreNamedByTheirNumbers) {
  const TempFolder temp;
  std::string text;
  for (int i = 1; i <= 5000; ++i)
    text += std::to_string(i) + std::string(static_cast<std::size_t>(i % 90), ' ') + "\n";
  const detail::RowIndex index(temp.put("rows.jsonl", text + "5001"), detail::split_lines, false);
  ASSERT_EQ(index.size(), 5001);
  for (const std::int64_t row : {0, 1, 1500, 3333, 4999, 5000}) {
    EXPECT_EQ(index.read(row).line, row + 1);
    EXPECT_EQ(std::stoll(index.read(row).text), row + 1);
  }
  std::filesystem::resize_file(temp / "rows.jsonl", 10);
  EXPECT_CONTAINS(error_of<FileError>([&] { index.read(5000); }), "shorter than when the run began");
}

TEST(RowIndex, BlocksAreWholeLinesOfCharacters) {
  const TempFolder temp;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "Zeile ä " + std::to_string(i) + "\n";
  for (int i = 0; i < 50000; ++i) text += "ü";  // a line longer than a block
  const detail::RowIndex index(temp.put("text.txt", text), detail::split_blocks, false);
  std::string whole;
  for (std::int64_t block = 0; block < index.size(); ++block) {
    const std::string read = index.read(block).text;
    EXPECT_LE(read.size(), 2 * detail::kBlockBytes + 4);
    EXPECT_TRUE(block + 1 == index.size() || read.size() >= detail::kBlockBytes);
    EXPECT_NE(static_cast<unsigned char>(read[0]) & 0xC0U, 0x80U);
    whole += read;
  }
  EXPECT_EQ(whole, text);
}

std::string lines(int count, const std::string& word) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += "{\"text\": \"" + word + std::to_string(i) + std::string(static_cast<std::size_t>(i % 23), '.') +
            "\"}\n";
  return text;
}

StreamedDataset stream_of(const std::vector<DataPath>& files, const DataFileOptions& options = {},
                          std::int64_t held_out = 0) {
  static const ByteTokenizer tokenizer;
  return StreamedDataset(files, tokenizer, options, {.seq_len = 40}, held_out);
}

/// The texts of the rows of a batch that is not packed.
std::vector<std::string> texts_of(const Batch& batch) {
  std::vector<std::string> texts;
  for (std::int64_t row = 0; row < batch.batch_size; ++row) {
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < batch.seq_len; ++i) {
      const auto at = static_cast<std::size_t>(row * batch.seq_len + i);
      if (i == 0) ids.push_back(batch.inputs[at]);
      if (batch.weights[at] != 0) ids.push_back(batch.targets[at]);
    }
    texts.push_back(ByteTokenizer().decode(ids, true));
  }
  return texts;
}

TEST(StreamedDataset, AnEpochHoldsWhatTheFilesHoldByTheirWeights) {
  const TempFolder temp;
  const std::vector<DataPath> files{{.path = temp.put("a.jsonl", lines(300, "a"))},
                                    {.path = temp.put("b.jsonl", lines(40, "b")), .weight = 2},
                                    {.path = temp.put("c.jsonl", lines(200, "c")), .weight = 0.25}};
  const StreamedDataset data = stream_of(files);
  const auto batches = data.batches(5, 3, Packing::none);
  std::vector<std::map<std::string, int>> epochs;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::map<std::string, int>& seen = epochs.emplace_back();
    for (int i = 0; i < (300 + 80 + 50) / 5; ++i)
      for (const std::string& text : texts_of(batches->next())) ++seen[text];
    EXPECT_EQ(std::ranges::count_if(seen, [](const auto& e) { return e.first[0] == 'a' && e.second == 1; }),
              300);
    EXPECT_EQ(std::ranges::count_if(seen, [](const auto& e) { return e.first[0] == 'b' && e.second == 2; }),
              40);
    EXPECT_EQ(std::ranges::count_if(seen, [](const auto& e) { return e.first[0] == 'c' && e.second == 1; }),
              50);
  }
  EXPECT_NE(epochs[0], epochs[1]);  // another quarter of c
  EXPECT_EQ(data.rows(), 540);
}

TEST(StreamedDataset, GivesTheSequencesOfADatasetInMemory) {
  const TempFolder temp;
  const auto path = temp.put("pairs.jsonl",
                             "{\"prompt\": \"p\", \"completion\": \"first\"}\n\n"
                             "{\"prompt\": \"long prompt\", \"completion\": \"second\"}\n"
                             "{\"text\": \"third\"}\n");
  const ByteTokenizer tokenizer;
  const DatasetOptions options{.seq_len = 12, .loss_on = LossOn::completion};
  const TokenDataset whole(load_examples(path), tokenizer, options);
  const DataPath file{.path = path};
  const StreamedDataset data(std::span(&file, 1), tokenizer, {}, options);
  const auto batches = data.batches(1, 1, Packing::none);
  using Row = std::tuple<std::vector<std::int32_t>, std::vector<std::int32_t>, std::vector<float>>;
  std::set<Row> expected, found;
  for (std::int64_t i = 0; i < whole.size(); ++i) {
    const Batch batch = whole.batch(std::vector{i});
    expected.insert({batch.inputs, batch.targets, batch.weights});
  }
  for (int i = 0; i < 3; ++i) {
    const Batch batch = batches->next();
    found.insert({batch.inputs, batch.targets, batch.weights});
  }
  EXPECT_EQ(expected.size(), 3U);
  EXPECT_EQ(found, expected);
}

TEST(StreamedDataset, GoesOnAnywhere) {
  const TempFolder temp;
  const std::vector<DataPath> files{
      {.path = temp.put("a.jsonl", lines(230, "a"))},
      {.path = temp.put("t.txt", std::string(50000, 'x') + "\nend\n"), .weight = 2}};
  const StreamedDataset data = stream_of(files);
  for (const Packing packing : {Packing::none, Packing::best_fit}) {
    const auto whole = data.batches(3, 9, packing);
    for (int i = 0; i < 1600; ++i) {
      const BatchPosition position = whole->position();
      const Batch expected = whole->next();
      if (i % 97 != 0) continue;
      const auto resumed = data.batches(3, 0, packing);
      resumed->restore(position);
      const Batch batch = resumed->next();
      ASSERT_EQ(batch.inputs, expected.inputs) << "batch " << i;
      ASSERT_EQ(batch.weights, expected.weights);
      ASSERT_EQ(batch.lengths, expected.lengths);
      ASSERT_EQ(resumed->position(), whole->position());
    }
    EXPECT_GT(whole->position().epoch, 0U);
  }
  const StreamedDataset other = stream_of({files[0]});
  EXPECT_CONTAINS(
      error_of<ValueError>([&] {
        other.batches(3, 9, Packing::none)->restore(data.batches(3, 9, Packing::none)->position());
      }),
      "does not fit");
  EXPECT_NE(data.fingerprint(), other.fingerprint());
  EXPECT_EQ(other.fingerprint(), stream_of({files[0]}).fingerprint());
}

TEST(StreamedDataset, ABadRowIsNamedOrCounted) {
  const TempFolder temp;
  // Behind the first rows, so that it is met while the stream is read.
  const std::string text = lines(3000, "a") + "{\"text\": broken}\n\n{\"text\": \"\"}\n" + lines(2, "b");
  const std::vector<DataPath> files{{.path = temp.put("a.jsonl", text)}};
  const auto read_all = [](const StreamedDataset& data) {
    const auto batches = data.batches(5, 1, Packing::none);
    while (batches->position().epoch == 0) batches->next();
  };
  EXPECT_CONTAINS(error_of<FileError>([&] { read_all(stream_of(files)); }), "a.jsonl:3001: ");
  const StreamedDataset lenient = stream_of(files, {.skip_bad_rows = true});
  read_all(lenient);
  EXPECT_GE(lenient.losses().bad_rows, 1);
  EXPECT_CONTAINS(lenient.losses().first_bad_row, "a.jsonl:3001: ");
  EXPECT_GE(lenient.losses().empty_rows, 1);
}

TEST(StreamedDataset, RefusesWhatItCannotRead) {
  const TempFolder temp;
  const auto error = [&](const std::string& name, const std::string& text) {
    return error_of<FileError>([&] { stream_of({{.path = temp.put(name, text)}}); });
  };
  EXPECT_CONTAINS(error("a.json", "[{\"text\": \"a\"}]"), "jq -c '.[]'");
  EXPECT_CONTAINS(error("a.parquet", "PAR1"), "Parquet");
  EXPECT_CONTAINS(error("a.jsonl", ""), "empty");
  EXPECT_CONTAINS(error("a.jsonl", "\n\n"), "no example with text");
  EXPECT_CONTAINS(error("a.csv", "text\n"), "no example with text");
  EXPECT_CONTAINS(error("a.txt", "\xFF\xFE"), "byte 0 is not UTF-8");
  EXPECT_CONTAINS(error_of<FileError>([&] { stream_of({{.path = "-"}}); }), "standard input");
  EXPECT_CONTAINS(error_of<FileError>([&] { stream_of({{.path = temp / "absent.jsonl"}}); }), "absent.jsonl");
  // Another kind than the first rows.
  const std::vector<DataPath> mixed{
      {.path = temp.put("m.jsonl",
                        lines(3000, "a") + "{\"prompt\": \"p\", \"chosen\": \"a\", \"rejected\": \"b\"}\n")}};
  const StreamedDataset data = stream_of(mixed);
  const auto batches = data.batches(8, 1, Packing::none);
  EXPECT_CONTAINS(error_of<FileError>([&] {
                    for (int i = 0; i < 400; ++i) batches->next();
                  }),
                  "m.jsonl:3001: the row is of another kind");
}

TEST(StreamedDataset, TakesLittleMemory) {
  const TempFolder temp;
  const std::string row = "{\"text\": \"" + std::string(1000, 'x') + "\"}\n";
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += row;
  const std::vector<DataPath> files{{.path = temp.put("rows.jsonl", text)}};
  std::string().swap(text);
  ::malloc_trim(0);
  const std::uint64_t before = testing::take_sample(Device::cpu(), 0, 0).rss;
  const StreamedDataset data = stream_of(files);
  const auto batches = data.batches(8, 1, Packing::none);
  for (int i = 0; i < 300; ++i) batches->next();
  EXPECT_LT(testing::take_sample(Device::cpu(), 0, 0).rss, before + (std::uint64_t{32} << 20));
  EXPECT_EQ(data.rows(), 100'000);
}

TEST(StreamedDataset, TheEndsOfFilesAreHeldOut) {
  const TempFolder temp;
  const std::vector<DataPath> files{{.path = temp.put("a.jsonl", lines(400, "a"))}};
  const StreamedDataset data = stream_of(files, {}, 7);
  const std::vector<ExampleSet> held = data.held_out();
  ASSERT_EQ(held.size(), 1U);
  ASSERT_EQ(held[0].examples.size(), 7U);
  EXPECT_TRUE(held[0].examples[0].text.starts_with("a393"));
  EXPECT_EQ(data.rows(), 393);
  EXPECT_EQ(stream_of(files, {}, 1000).rows(), 380);  // a twentieth at most
}

}  // namespace
}  // namespace caldera
