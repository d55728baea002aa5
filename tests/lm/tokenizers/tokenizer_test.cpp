#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "lm/base/unicode/utf8.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "lm/tokenizers/sources/load_tokenizer.h"
#include "lm/tokenizers/sources/tokenizer_json.h"
#include "lm/tokenizers/stream_decoder.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/lm/tokenizers/small_tokenizer.h"
#include "tests/support/test_data.h"

namespace caldera {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::kA;
using testing::kAa;
using testing::kAaaa;
using testing::kAb;
using testing::kAbc;
using testing::kB;
using testing::kBc;
using testing::kByte;
using testing::kC;
using testing::kSpA;
using testing::kSpAb;
using testing::kSpace;
using testing::slurp;
using testing::small_tokenizer;
using testing::TempFolder;
using Ids = std::vector<std::int32_t>;

constexpr const char* kUnknown = "\xEF\xBF\xBD";

Ids parse_ids(const std::string& text) {
  std::istringstream in(text);
  Ids ids;
  for (std::int32_t id; in >> id;) ids.push_back(id);
  return ids;
}

TokenizerJson make_tokenizer(const json& config) { return TokenizerJson(config.dump(), "tokenizer.json"); }

TEST(Tokenizer, StoriesTextIsReproduced) {
  CALDERA_REQUIRE_DATA(dir, "stories260K");
  const auto tokenizer = load_tokenizer(dir);
  EXPECT_EQ(tokenizer->vocab_size(), 512);
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  // The file lists bos and the first 199 tokens of the text; the text has the 200th too, " she".
  Ids ids = parse_ids(slurp(dir / "greedy_token_ids_200.txt"));
  ASSERT_EQ(ids.size(), 200u);
  ids.push_back(358);
  const std::string text = slurp(dir / "expected_greedy_200.txt");
  EXPECT_EQ(tokenizer->decode(ids), text);
  // What the model wrote token by token is also what encoding the text gives.
  EXPECT_EQ(tokenizer->encode(text), ids);
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(tokenizer->encode(text, false), Ids(ids.begin() + 1, ids.end()));
  EXPECT_TRUE(tokenizer->decode(ids, false).starts_with("<s>"));

  StreamDecoder stream(*tokenizer);
  std::string streamed;
  for (const auto id : ids) streamed += stream.push(id);
  EXPECT_EQ(streamed + stream.finish(), text);
}

TEST(Tokenizer, LlamaGoldenCases) {
  CALDERA_REQUIRE_DATA(dir, "tokenizers/llama2");
  const auto tokenizer = load_tokenizer(dir);
  EXPECT_EQ(tokenizer->vocab_size(), 32000);
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::string inputs = slurp(dir / "golden.inp");
  std::istringstream outputs(slurp(dir / "golden.out"));
  int cases = 0;
  for (std::size_t end; (end = inputs.find(separator)) != inputs.npos;
       inputs.erase(0, end + separator.size())) {
    const std::string text = inputs.substr(0, end);
    std::string line;
    ASSERT_TRUE(std::getline(outputs, line));
    ++cases;
    const Ids expected = parse_ids(line);
    EXPECT_EQ(tokenizer->encode(text, false), expected) << "text: '" << text << "'";
    const auto with_bos = tokenizer->encode(text);
    ASSERT_EQ(with_bos.size(), expected.size() + 1);
    EXPECT_EQ(with_bos.front(), 1);
    EXPECT_EQ(tokenizer->decode(with_bos), text);

    StreamDecoder stream(*tokenizer);
    std::string streamed;
    for (const auto id : with_bos) {
      streamed += stream.push(id);
      ASSERT_TRUE(detail::is_utf8(streamed));
    }
    EXPECT_EQ(streamed + stream.finish(), text);
  }
  EXPECT_EQ(cases, 46);
}

TEST(Tokenizer, MergesByRankThenPosition) {
  const auto tokenizer = make_tokenizer(small_tokenizer());
  const auto encode = [&](const char* text) { return tokenizer.encode(text, false); };
  EXPECT_EQ(encode("abc"), (Ids{kSpA, kBc})) << "b+c is the lowest rank, then ▁+a beats a+bc";
  EXPECT_EQ(encode("babc"), (Ids{kSpace, kB, kAbc}));
  EXPECT_EQ(encode("ab"), (Ids{kSpAb})) << "a+b first, then ▁+ab";
  EXPECT_EQ(encode("baaaaa"), (Ids{kSpace, kB, kAaaa, kA})) << "equal ranks merge from the left";
  EXPECT_EQ(encode("baaa"), (Ids{kSpace, kB, kAa, kA}));
  EXPECT_EQ(encode(""), Ids{});
  EXPECT_EQ(encode(" "), (Ids{kSpace, kSpace}));
  EXPECT_EQ(encode("\n"), (Ids{kSpace, kByte + 10})) << "byte fallback";
  EXPECT_EQ(encode("é"), (Ids{kSpace, kByte + 0xC3, kByte + 0xA9}));
}

/// The textbook algorithm: find the best pair, merge its leftmost occurrence, start again.
Ids slow_bpe(std::string_view text, const json& config) {
  const auto& model = config.at("model");
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  for (;;) {
    std::size_t best_rank = SIZE_MAX;
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto& merges = model.at("merges");
      for (std::size_t rank = 0; rank < merges.size() && rank < best_rank; ++rank) {
        if (merges[rank] == parts[i] + " " + parts[i + 1]) {
          best_rank = rank;
          best = i;
        }
      }
    }
    if (best_rank == SIZE_MAX) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const auto& part : parts) ids.push_back(model.at("vocab").at(part).get<std::int32_t>());
  return ids;
}

TEST(Tokenizer, QueueAgreesWithTheTextbookMergeLoop) {
  json config = small_tokenizer();
  config["normalizer"] = nullptr;
  const auto tokenizer = make_tokenizer(config);
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (auto n = random() % 30; n > 0; --n) text += "abc"[random() % 3];
    ASSERT_EQ(tokenizer.encode(text, false), slow_bpe(text, config)) << text;
  }
}

TEST(Tokenizer, LongTextsTakeNoQuadraticTime) {
  const auto tokenizer = make_tokenizer(small_tokenizer());
  const std::string text(1 << 20, 'a');
  const auto start = std::chrono::steady_clock::now();
  const auto ids = tokenizer.encode(text, false);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(ids.size(), (1u << 18) + 1);
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_LT(seconds.count(), 60.0);  // a quadratic loop would take hours
}

TEST(Tokenizer, SpecialTokensInTheText) {
  const auto tokenizer = make_tokenizer(small_tokenizer());
  EXPECT_EQ(tokenizer.encode("a</s>b<s>"), (Ids{1, kSpA, 2, kSpace, kB, 1}))
      << "each part is normalised by itself";
  EXPECT_EQ(tokenizer.encode("</s"), (Ids{1, kSpace, kByte + '<', kByte + '/', kByte + 's'}));
  EXPECT_EQ(tokenizer.decode(Ids{1, kSpA, 2, kSpace, kB}), "a b");
  EXPECT_EQ(tokenizer.decode(Ids{1, kSpA, 2, kSpace, kB}, false), "<s> a</s> b");

  json config = small_tokenizer();
  config["added_tokens"].push_back(
      {{"id", 300}, {"content", "<s><s>"}, {"special", false}, {"lstrip", true}, {"rstrip", true}});
  const auto more = make_tokenizer(config);
  EXPECT_EQ(more.vocab_size(), 301);
  EXPECT_EQ(more.encode("b \t<s><s>\n\xC2\xA0<s>", false), (Ids{kSpace, kB, 300, 1}))
      << "the longest match wins and takes the white space along";
  EXPECT_EQ(more.decode(Ids{300, 1}), "<s><s>") << "not special: stays";

  config = small_tokenizer();
  config["added_tokens"][2]["normalized"] = true;
  EXPECT_EQ(make_tokenizer(config).encode("</s>a", false), (Ids{2, kA}))
      << "matched as '▁</s>' in the normalised text";
  EXPECT_EQ(make_tokenizer(config).encode("a</s>", false).front(), kSpA) << "no match without the prefix";
  EXPECT_EQ(make_tokenizer(config).encode("a</s>", false).size(), 5u);
}

TEST(Tokenizer, MergesAsPairsAndOtherOptions) {
  json config = small_tokenizer();
  config["model"]["merges"] = json::array({json::array({"b", "c"}), json::array({"a", "bc"})});
  EXPECT_EQ(make_tokenizer(config).encode("abc", false), (Ids{kSpace, kAbc}));

  // A merge of tokens that hold spaces: the space that leaves two tokens separates.
  config["normalizer"] = nullptr;
  config["model"]["vocab"].update({{" ", 270}, {"  ", 271}, {"    ", 272}});
  config["model"]["merges"] = {"   ", "     "};
  EXPECT_EQ(make_tokenizer(config).encode("       ", false), (Ids{272, 271, 270}));

  config["model"]["merges"] = {"a b"};
  EXPECT_EQ(make_tokenizer(config).encode("abc", false), (Ids{kAb, kC}));
  config["model"]["ignore_merges"] = true;
  EXPECT_EQ(make_tokenizer(config).encode("abc", false), Ids{kAbc}) << "the whole word is a token";

  config["model"]["byte_fallback"] = false;
  EXPECT_EQ(make_tokenizer(config).encode("aéüb", false), (Ids{kA, 0, kB})) << "unknown characters fuse";
  config["model"]["fuse_unk"] = false;
  EXPECT_EQ(make_tokenizer(config).encode("aéüb", false), (Ids{kA, 0, 0, kB}));
  config["model"]["unk_token"] = nullptr;
  EXPECT_EQ(make_tokenizer(config).encode("aéüb", false), (Ids{kAb})) << "no token for unknown: dropped";

  config["post_processor"] = nullptr;
  EXPECT_EQ(make_tokenizer(config).encode("c"), Ids{kC});
  config["decoder"] = nullptr;
  EXPECT_EQ(make_tokenizer(config).decode(Ids{kC, kAb}), "c ab")
      << "as the reference joins without a decoder";
}

TEST(Tokenizer, TemplateMayEndATextToo) {
  json config = small_tokenizer();
  config["post_processor"]["single"].push_back({{"SpecialToken", {{"id", "</s>"}}}});
  config["post_processor"]["special_tokens"]["</s>"] = {{"ids", {2}}};
  EXPECT_EQ(make_tokenizer(config).encode("b"), (Ids{1, kSpace, kB, 2}));
  EXPECT_EQ(make_tokenizer(config).encode("b", false), (Ids{kSpace, kB}));
}

TEST(Tokenizer, DecodesBytesAsTheReferenceDoes) {
  const auto tokenizer = make_tokenizer(small_tokenizer());
  EXPECT_EQ(tokenizer.decode(Ids{kByte + 0xC3, kByte + 0xA9}), "é");
  EXPECT_EQ(tokenizer.decode(Ids{kByte + 0xC3, kA}), kUnknown + std::string("a"));
  EXPECT_EQ(tokenizer.decode(Ids{kByte + 0xC3, kByte + 0xA9, kByte + 0xFF}),
            std::string(kUnknown) + kUnknown + kUnknown)
      << "a malformed run gives one U+FFFD a byte";
  EXPECT_EQ(tokenizer.decode(Ids{kSpace, kSpace, kA}), " a") << "one leading space goes";
  EXPECT_EQ(tokenizer.decode(Ids{}), "");
}

TEST(Tokenizer, IdsOutOfRange) {
  const auto tokenizer = make_tokenizer(small_tokenizer());
  EXPECT_CONTAINS(error_of<ValueError>([&] { (void)tokenizer.decode(Ids{1, 270}); }), "270");
  EXPECT_CONTAINS(error_of<ValueError>([&] { (void)tokenizer.decode(Ids{-1}); }), "-1");
  // A model may have more rows than its tokenizer has tokens; those decode to nothing.
  const TokenizerJson padded(small_tokenizer().dump(), "t",
                             {.bos_id = {}, .eos_id = {}, .model_vocab_size = 300});
  EXPECT_EQ(padded.decode(Ids{kA, 299}), "a");
  EXPECT_EQ(padded.vocab_size(), 270);
  EXPECT_THROW((void)padded.decode(Ids{300}), ValueError);
}

TEST(Tokenizer, AnyBytesEncode) {
  const auto tokenizer = make_tokenizer(small_tokenizer());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xFF"
                                              "b")),
            std::string("a") + kUnknown + "b");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("\xE2\x82")), kUnknown);
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 40, '\0');
    for (auto& c : bytes) c = static_cast<char>(random() % 256);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), detail::to_utf8(bytes));
  }
}

TEST(Tokenizer, RefusesWhatItDoesNotSupport) {
  const auto error = [](const char* pointer, const json& value) {
    json config = small_tokenizer();
    config[json::json_pointer(pointer)] = value;
    auto message = error_of<FileError>([&] { make_tokenizer(config); });
    EXPECT_CONTAINS(message, "tokenizer.json");
    return message;
  };
  EXPECT_CONTAINS(error("/normalizer", {{"type", "Fancy"}}), "normalizer 'Fancy'");
  EXPECT_CONTAINS(error("/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "("}}}, {"content", ""}}),
                  "'('");
  EXPECT_CONTAINS(error("/normalizer", "x"), "object");
  EXPECT_CONTAINS(error("/pre_tokenizer", {{"type", "Fancy"}}), "pre_tokenizer 'Fancy'");
  EXPECT_CONTAINS(error("/post_processor", {{"type", "Roberta"}}), "post_processor 'Roberta'");
  EXPECT_CONTAINS(error("/post_processor/special_tokens", json::object()), "'<s>'");
  EXPECT_CONTAINS(error("/post_processor/special_tokens/<s>/ids", {5000}), "5000");
  EXPECT_CONTAINS(error("/post_processor/special_tokens/<s>/ids", {-1}), "'<s>'");
  EXPECT_CONTAINS(error("/post_processor/single", json::array()), "Sequence");
  EXPECT_CONTAINS(error("/decoder", {{"type", "Fancy"}}), "decoder 'Fancy'");
  EXPECT_CONTAINS(error("/decoder", {{"type", "Strip"}, {"content", "ab"}, {"start", 1}, {"stop", 0}}),
                  "character");
  EXPECT_CONTAINS(error("/model/type", "Fancy"), "model 'Fancy'");
  EXPECT_CONTAINS(error("/model/type", "Unigram"), "vocab");
  EXPECT_CONTAINS(error("/model", nullptr), "model");
  EXPECT_CONTAINS(error("/model/dropout", 0.1), "dropout");
  EXPECT_CONTAINS(error("/model/continuing_subword_prefix", "##"), "two tokens");
  EXPECT_CONTAINS(error("/model/unk_token", "nope"), "'nope'");
  EXPECT_CONTAINS(error("/model/vocab", json::object()), "vocab");
  EXPECT_CONTAINS(error("/model/vocab/a", -1), "'a'");
  EXPECT_CONTAINS(error("/model/vocab/a", 1LL << 40), "'a'");
  EXPECT_CONTAINS(error("/model/vocab/a", "1"), "'a'");
  EXPECT_CONTAINS(error("/model/vocab/a", 0), "the same id 0");
  EXPECT_CONTAINS(error("/model/merges", nullptr), "merges");
  EXPECT_CONTAINS(error("/model/merges/0", "b"), "two tokens");
  EXPECT_CONTAINS(error("/model/merges/0", "b c d"), "two tokens");
  EXPECT_CONTAINS(error("/model/merges/0", {"b"}), "two tokens");
  EXPECT_CONTAINS(error("/model/merges/0", "c a"), "two tokens");
  EXPECT_CONTAINS(error("/model/merges/0", std::string(1'000'000, ' ')), "two tokens");
  EXPECT_CONTAINS(error("/added_tokens", 1), "added_tokens");
  EXPECT_CONTAINS(error("/added_tokens/0/id", 5), "id 5");
  EXPECT_CONTAINS(error("/added_tokens/0/id", -5), "id");
  EXPECT_CONTAINS(error("/added_tokens/0/single_word", 1), "single_word");
  EXPECT_CONTAINS(error_of<FileError>([] { TokenizerJson("{", "t.json"); }), "t.json: not valid JSON");
  EXPECT_CONTAINS(error_of<FileError>([] { TokenizerJson("[]", "t.json"); }), "not an object");
}

TEST(LoadTokenizer, FindsSpecialsAndFallsBackToBytes) {
  const TempFolder folder;
  EXPECT_CONTAINS(error_of<FileError>([&] { load_tokenizer(folder / "gone"); }), "gone");
  EXPECT_CONTAINS(error_of<FileError>([&] { load_tokenizer(folder.path()); }), "tokenizer.json");
  folder.put("config.json", R"({"vocab_size": 300})");
  EXPECT_CONTAINS(error_of<FileError>([&] { load_tokenizer(folder.path()); }), "258");
  folder.put("config.json", R"({"vocab_size": 258})");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("a"), (Ids{256, 'a'}));
  folder.put("config.json", R"({"vocab_size": 256})");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("a"), (Ids{'a'}));
  EXPECT_EQ(load_tokenizer(folder.path())->vocab_size(), 256);

  folder.put("tokenizer.json", small_tokenizer().dump());
  folder.put("config.json", R"({"vocab_size": 300, "bos_token_id": 1, "eos_token_id": [2, 0]})");
  EXPECT_EQ(load_tokenizer(folder.path())->bos_id(), 1);
  EXPECT_EQ(load_tokenizer(folder.path())->eos_id(), 2);
  EXPECT_EQ(load_tokenizer(folder.path())->decode(Ids{299}), "");
  folder.put("tokenizer_config.json", R"({"bos_token": {"content": "</s>"}, "eos_token": "a"})");
  EXPECT_EQ(load_tokenizer(folder.path())->bos_id(), 2) << "tokenizer_config.json comes first";
  EXPECT_EQ(load_tokenizer(folder.path())->eos_id(), kA);
  folder.put("tokenizer_config.json", R"({"bos_token": 7})");
  EXPECT_CONTAINS(error_of<FileError>([&] { load_tokenizer(folder.path()); }), "bos_token");
  std::filesystem::remove(folder / "tokenizer_config.json");
  std::filesystem::remove(folder / "config.json");
  EXPECT_EQ(load_tokenizer(folder.path())->bos_id(), std::nullopt);
}

}  // namespace
}  // namespace caldera
