// Kinds of data files, their columns and weights, and what is held out of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/lm/base/io_test_support.h"
#include "training/data/batch_iterator.h"
#include "training/data/dataset.h"
#include "training/data/example_files.h"
#include "training/data/hold_out.h"

namespace caldera {
namespace {

using testing::error_of;
using testing::TempFolder;

std::vector<std::string> texts_of(const ExampleSet& set) {
  std::vector<std::string> texts;
  for (const Example& example : set.examples) texts.push_back(example.prompt + "|" + example.text);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(DataFiles, OfOneContentInFourKinds) {
  const TempFolder folder;
  const Texts want{"a|b,c", "line\nbreak|\"q\"", "\u00e9|z"};
  const std::string rows[] = {
      R"({"prompt": "a", "completion": "b,c"})",
      R"({"prompt": "line\nbreak", "completion": "\"q\"", "more": 12345678901234567890123})",
      R"({"prompt": "é", "completion": "z"})"};
  const std::string list = "[" + rows[0] + ",\n" + rows[1] + "," + rows[2] + "]";
  EXPECT_EQ(texts_of(load_examples(folder.put("d.jsonl", rows[0] + "\n" + rows[1] + "\r\n\n" + rows[2]))),
            want);
  EXPECT_EQ(texts_of(load_examples(folder.put("d.json", list))), want);
  EXPECT_EQ(texts_of(load_examples(folder.put("e.json", "{\"data\": " + list + "}"))), want);
  // A byte order mark, quotes, doubled quotes, a line end within quotes, both kinds of line ends, none at the
  // end.
  EXPECT_EQ(texts_of(load_examples(folder.put("d.csv",
                                              "\xEF\xBB\xBFprompt,completion\r\na,\"b,c\"\r\n"
                                              "\"line\nbreak\",\"\"\"q\"\"\"\n\xC3\xA9,z"))),
            want);
  EXPECT_EQ(texts_of(load_examples(folder.put(
                "d.tsv", "prompt\tcompletion\na\tb,c\n\"line\nbreak\"\t\"\"\"q\"\"\"\n\xC3\xA9\tz\n"))),
            want);
}

TEST(DataFiles, ErrorsNameTheRow) {
  const TempFolder folder;
  const auto error = [&](const char* name, const std::string& content) {
    const auto path = folder.put(name, content);
    return error_of<FileError>([&] { load_examples(path); });
  };
  EXPECT_CONTAINS(error("a.csv", "text,n\nx,1\ny\n"),
                  "a.csv:3: 1 fields, and the first line names 2 columns");
  EXPECT_CONTAINS(error("a.csv", "text\n\"never"), "a.csv:2: a quote opens there and never closes");
  EXPECT_CONTAINS(error("a.csv", "text\n\"a\"b\n"), "a.csv:2: something follows a closing quote");
  EXPECT_CONTAINS(error("a.csv", "text\n\xFF\n"), "a.csv:2: column 'text' is not UTF-8");
  EXPECT_CONTAINS(error("a.csv", "text,text\na,b\n"), "two columns have the name 'text'");
  EXPECT_CONTAINS(error("a.csv", "txt\na\n"), "a.csv:2: none of the forms");
  EXPECT_CONTAINS(error("a.csv", "txt\na\n"), "it has the fields txt");
  EXPECT_CONTAINS(error("a.json", R"([{"text": "x"}, 5])"), "a.json: row 2: a JSON object was expected");
  EXPECT_CONTAINS(error("a.json", R"({"text": "x"})"), ".jsonl");
  EXPECT_CONTAINS(error("a.json", "[{\"text\": \"x\"},\n}"), "line 2");
  EXPECT_CONTAINS(error("a.txt", "caf\xE9 au lait"), "byte 3 is not UTF-8");
}

TEST(DataFiles, WhatIsNotReadSaysHowToConvertIt) {
  const TempFolder folder;
  const auto error = [&](const char* name, const std::string& content) {
    const auto path = folder.put(name, content);
    return error_of<FileError>([&] { load_examples(path); });
  };
  EXPECT_CONTAINS(error("d.parquet", "PAR1"), "read_parquet('");
  EXPECT_CONTAINS(error("d.parquet", "PAR1"), "d.jsonl', orient='records', lines=True)");
  EXPECT_CONTAINS(error("d.jsonl.gz", "\x1F\x8B"), "gunzip -k");
  EXPECT_CONTAINS(error("d.jsonl", "PAR1\x15\x04"), "Parquet") << "whatever its name";
}

TEST(DataFiles, BadRowsAreLeftOutOnRequestAndCounted) {
  const TempFolder folder;
  const auto path = folder.put(
      "d.jsonl", "{\"text\": \"a\"}\n{bad\n{\"text\": 3}\n{\"text\": \"\"}\n{\"text\": \"b\"}\n[]\n");
  EXPECT_THROW(load_examples(path), FileError);
  const ExampleSet set = load_examples(path, {.skip_bad_rows = true});
  EXPECT_EQ(texts_of(set), (Texts{"|a", "|b"}));
  EXPECT_EQ(set.bad_rows, 3);
  EXPECT_EQ(set.empty_rows, 1);
  EXPECT_CONTAINS(set.first_bad_row, "d.jsonl:2: not valid JSON");
  // A record of the wrong length does not take the next one with it.
  const ExampleSet csv =
      load_examples(folder.put("d.csv", "text,n\na,1\nb\n\"c\"d,1\ne,2\n"), {.skip_bad_rows = true});
  EXPECT_EQ(texts_of(csv), (Texts{"|a", "|e"}));
  EXPECT_EQ(csv.bad_rows, 2);
  EXPECT_CONTAINS(
      error_of<FileError>([&] { load_examples(folder.put("e.jsonl", "{bad\n"), {.skip_bad_rows = true}); }),
      "1 rows could not be read");
}

TEST(DataFiles, ColumnsOfOtherNames) {
  const TempFolder folder;
  const auto columns = parse_columns("prompt=question,completion=answer");
  EXPECT_EQ(texts_of(load_examples(folder.put("d.csv", "question,answer\nq,a\n"), {.columns = columns})),
            (Texts{"q|a"}));
  // Of several files one may have the fields' own names; a named column wins over a field of that name.
  EXPECT_EQ(texts_of(load_examples(folder.put("e.csv", "prompt,completion\nq,a\n"), {.columns = columns})),
            (Texts{"q|a"}));
  EXPECT_EQ(
      texts_of(load_examples(folder.put("f.csv", "prompt,question,answer\nx,q,a\n"), {.columns = columns})),
      (Texts{"q|a"}));
  const auto error = [](const char* text) { return error_of<ValueError>([&] { parse_columns(text); }); };
  EXPECT_CONTAINS(error("promt=q"), "'promt' is no field");
  EXPECT_CONTAINS(error("promt=q"), "prompt");
  EXPECT_CONTAINS(error("prompt"), "FIELD=COLUMN");
  EXPECT_CONTAINS(error("prompt=a,prompt=b"), "two columns");
}

TEST(DataPaths, HaveWeights) {
  const TempFolder folder;
  EXPECT_EQ(parse_weighted_path("a/b.jsonl", "data").weight, 1);
  EXPECT_EQ(parse_weighted_path("a/b.jsonl:2.5", "data").path, "a/b.jsonl");
  EXPECT_EQ(parse_weighted_path("a/b.jsonl:2.5", "data").weight, 2.5);
  EXPECT_EQ(parse_weighted_path("c:x.jsonl", "data").path, "c:x.jsonl");
  const std::string odd = folder.put("x.jsonl:2", "{}").string();
  EXPECT_EQ(parse_weighted_path(odd, "data").path, odd) << "there is a file of that name";
  for (const char* text : {"a:0", "a:-1", "a:1e9", "a:inf"})
    EXPECT_CONTAINS(error_of<ValueError>([&] { parse_weighted_path(text, "data"); }), "weight") << text;
}

/// How often each example of two files of 8, "a" to "h" and "A" to "H", is in an epoch.
std::map<std::int64_t, int> counts_of(const TokenDataset& data, std::uint64_t epoch) {
  std::map<std::int64_t, int> counts;
  for (const std::int64_t i : data.epoch_order(7, epoch)) ++counts[i];
  return counts;
}

TEST(DataPaths, WeightsArePassesOfAnEpoch) {
  std::vector<ExampleSet> files(2);
  for (int i = 0; i < 8; ++i) {
    files[0].examples.push_back({"", std::string(1, static_cast<char>('a' + i))});
    files[1].examples.push_back({"", std::string(1, static_cast<char>('A' + i))});
  }
  files[0].weight = 2;
  files[1].weight = 0.25;
  const TokenDataset data(files, ByteTokenizer(), {.seq_len = 8});
  EXPECT_EQ(data.size(), 16);
  EXPECT_EQ(data.epoch_size(), 18);
  std::map<std::int64_t, int> all;
  for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
    const auto counts = counts_of(data, epoch);
    for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(counts.at(i), 2);
    int drawn = 0;
    for (std::int64_t i = 8; i < 16; ++i) {
      const auto found = counts.find(i);
      if (found == counts.end()) continue;
      EXPECT_EQ(found->second, 1);
      ++drawn;
      ++all[i];
    }
    EXPECT_EQ(drawn, 2);
  }
  EXPECT_EQ(all.size(), 8U) << "a fresh quarter each epoch: in 40 of them every example has its turn";
  // A weight of 1.5 is all of them and a half.
  files[1].weight = 1.5;
  EXPECT_EQ(TokenDataset(files, ByteTokenizer(), {.seq_len = 8}).epoch_size(), 16 + 12);
}

TEST(HoldOut, DrawsAShareBySeed) {
  const auto numbers = [] {
    ExampleSet set;
    for (int i = 0; i < 100; ++i) set.examples.push_back({"", std::to_string(i)});
    return set;
  };
  ExampleSet train = numbers(), again = numbers(), other = numbers();
  const auto valid = hold_out_drawn(train, 0.2, 1);
  ASSERT_TRUE(valid);
  EXPECT_EQ(valid->examples.size(), 20U);
  EXPECT_EQ(train.examples.size(), 80U);
  Texts all = texts_of(train);
  for (const std::string& text : texts_of(*valid)) all.push_back(text);
  std::ranges::sort(all);
  Texts want = texts_of(numbers());
  std::ranges::sort(want);
  EXPECT_EQ(all, want) << "each is in one part";
  EXPECT_EQ(texts_of(*hold_out_drawn(again, 0.2, 1)), texts_of(*valid));
  EXPECT_NE(texts_of(*hold_out_drawn(other, 0.2, 2)), texts_of(*valid));
  ExampleSet one{.plain_text = false, .examples = {{"", "x"}}};
  EXPECT_FALSE(hold_out_drawn(one, 0.5, 1));
  // A document is cut between characters: é has two bytes.
  ExampleSet document{.plain_text = true, .examples = {{"", "abc\u00e9\u00e9"}}};
  EXPECT_EQ(hold_out_drawn(document, 0.4, 1)->examples.at(0).text, "\u00e9");
  EXPECT_EQ(document.examples.at(0).text, "abc\u00e9");
}

}  // namespace
}  // namespace caldera
