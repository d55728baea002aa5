// Files that are malformed or mean harm: each gives one clear error, or a tokenizer that works.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "engine/base/error.h"
#include "lm/tokenizers/sources/gguf_vocabulary.h"
#include "lm/tokenizers/sources/load_tokenizer.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/lm/tokenizers/tokenizer_tests.h"

namespace caldera::testing {
namespace {

using nlohmann::json;

/// A file with something of everything.
json rich_file() {
  json file = tokenizer_file({{"type", "BPE"},
                              {"unk_token", "u"},
                              {"vocab", {{"u", 0}, {"a", 1}, {"b", 2}, {"ab", 3}, {"Ġ", 4}}},
                              {"merges", {"a b"}}},
                             {{"type", "ByteLevel"}});
  file["added_tokens"] = json::array({{{"id", 5}, {"content", "<s>"}, {"special", true}}});
  file["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers",
       json::array(
           {{{"type", "NFC"}}, {{"type", "Replace"}, {"pattern", {{"Regex", "x+"}}}, {"content", "a"}}})}};
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       json::array({{{"type", "Split"}, {"pattern", {{"Regex", " ?\\p{L}+"}}}, {"behavior", "Isolated"}},
                    {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}})}};
  file["post_processor"] = {{"type", "RobertaProcessing"}, {"sep", {"<s>", 5}}, {"cls", {"<s>", 5}}};
  return file;
}

/// Loads a text as a tokenizer.json; true where it is one. Any error must be a FileError of one line.
bool loads(const std::string& text) {
  try {
    const TokenizerJson tokenizer(text, "tokenizer.json");
    try {
      (void)tokenizer.decode(tokenizer.encode("ab xx <s> \xF0\x9F\x9A\x80"));
    } catch (const ValueError&) {
      // An expression or a replacement that goes too far.
    }
    return true;
  } catch (const FileError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("tokenizer.json")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return false;
  }
}

TEST(HostileTokenizers, MutatedBytes) {
  const std::string good = rich_file().dump();
  ASSERT_TRUE(loads(good));
  std::mt19937 random(21);
  for (int round = case_count(2000); round > 0; --round) {
    std::string text = good;
    for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, 1 + random() % 5);
          break;
        case 2:
          text.insert(at, 1, "{}[]\",:\\0129-(+*?"[random() % 17]);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
      }
    }
    (void)loads(text);
  }
}

TEST(HostileTokenizers, WrongTypesEverywhere) {
  const json wrong[] = {nullptr,       true,          -1, 1e300, 18446744073709551615ULL, "x",
                        json::array(), json::object()};
  const json flat = rich_file().flatten();
  int refused = 0;
  for (const auto& [pointer, value] : flat.items()) {
    for (const auto& other : wrong) {
      json file = rich_file();
      file[json::json_pointer(pointer)] = other;
      refused += loads(file.dump()) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 100);
}

std::string error_with(const char* stage, const json& value) {
  json file = rich_file();
  file[stage] = value;
  return error_of<FileError>([&] { TokenizerJson(file.dump(), "tokenizer.json"); });
}

TEST(HostileTokenizers, NamesWhatIsWrong) {
  const auto split = [](const std::string& expression) {
    return json{{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}};
  };
  EXPECT_CONTAINS(error_with("pre_tokenizer", split("(a")), "'(a'");
  EXPECT_CONTAINS(error_with("pre_tokenizer", split("(*LIMIT_MATCH=1)a")), "(*");
  EXPECT_CONTAINS(error_with("pre_tokenizer", split("\\p{Nonsense}")), "'Nonsense'");
  EXPECT_CONTAINS(error_with("pre_tokenizer", split("[z-a]")), "range");
  EXPECT_CONTAINS(error_with("pre_tokenizer", split(std::string(1'000'000, '('))), "limit");
  EXPECT_CONTAINS(error_with("pre_tokenizer", split(std::string(60'000, '['))), "too deep");
  EXPECT_CONTAINS(error_with("pre_tokenizer", split(std::string(60'000, '('))), "compiled");
  EXPECT_CONTAINS(
      error_with("pre_tokenizer", {{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "x"}}),
      "behavior");
  EXPECT_CONTAINS(error_with("pre_tokenizer", {{"type", "FixedLength"}, {"length", 0}}), "length");
  EXPECT_CONTAINS(error_with("pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}}), "replacement");
}

TEST(HostileTokenizers, MoreOfWhatIsWrong) {
  json many = json::array();
  for (int i = 0; i < 100; ++i) many.push_back({{"type", "WhitespaceSplit"}});
  EXPECT_CONTAINS(error_with("pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", many}}), "steps");
  json deep = {{"type", "WhitespaceSplit"}};
  for (int i = 0; i < 2000; ++i) deep = {{"type", "Sequence"}, {"pretokenizers", json::array({deep})}};
  EXPECT_CONTAINS(error_with("pre_tokenizer", deep), "nest");
  EXPECT_CONTAINS(error_with("normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "!!!!"}}),
                  "base64");
  EXPECT_CONTAINS(
      error_with("normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "////fwAAAAA="}}),
      "charsmap");
  const json unigram = {
      {"type", "Unigram"}, {"unk_id", 7}, {"vocab", json::array({json::array({"a", 0.0})})}};
  EXPECT_CONTAINS(error_with("model", unigram), "unk_id");
  EXPECT_CONTAINS(
      error_with("model", {{"type", "Unigram"}, {"vocab", json::array({json::array({"a", "b"})})}}), "score");
  EXPECT_CONTAINS(error_with("model", {{"type", "WordPiece"}, {"vocab", {{"a", 0}}}}), "[UNK]");
  EXPECT_CONTAINS(error_with("model", {{"type", "WordLevel"}, {"vocab", {{std::string(100'000, 'a'), 0}}}}),
                  "limit");
  EXPECT_CONTAINS(
      error_with("post_processor", {{"type", "BertProcessing"}, {"sep", {"a"}}, {"cls", {"a", 1}}}),
      "must be a token and its id");
}

TEST(HostileTokenizers, ExpressionsThatBacktrackWithoutEnd) {
  json file = rich_file();
  file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "(a+)+$"}}}, {"behavior", "Isolated"}};
  const TokenizerJson tokenizer(file.dump(), "tokenizer.json");
  EXPECT_EQ(tokenizer.encode("aab"), (Ids{5, 1, 3, 5}));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_CONTAINS(error_of<ValueError>([&] { (void)tokenizer.encode(std::string(64, 'a') + "b"); }),
                  "(a+)+$");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 60.0);  // without a limit: longer than the world has stood

  file["pre_tokenizer"] = nullptr;
  file["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1 << 20, 'b')}};
  const TokenizerJson growing(file.dump(), "tokenizer.json");
  EXPECT_CONTAINS(error_of<ValueError>([&] { (void)growing.encode(std::string(1 << 20, 'a')); }),
                  "times as long");
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

/// A field of a protocol buffer's message that holds bytes.
std::string field(int number, const std::string& bytes) {
  std::string out;
  append_varint(out, static_cast<std::uint64_t>(number) << 3 | 2);
  append_varint(out, bytes.size());
  return out + bytes;
}

std::string piece(const std::string& text, float score, int type) {
  std::string out = field(1, text);
  out += '\x15';  // field 2, four bytes
  char bytes[4];
  std::memcpy(bytes, &score, 4);
  out.append(bytes, 4);
  out += '\x18';  // field 3, a varint
  append_varint(out, static_cast<std::uint64_t>(type));
  return field(1, out);
}

std::string small_sentencepiece() {
  std::string file = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3);
  file += piece("\xE2\x96\x81", -1, 1) + piece("a", -2, 1) + piece("b", -3, 1) + piece("ab", -2.5F, 1);
  file += piece(
              "\xE2\x96\x81"
              "ab",
              -3, 1) +
          piece("<u>", 0, 4);
  std::string trainer = "\x18\x01";  // model_type = 1, Unigram
  return file + field(2, trainer);
}

TEST(HostileTokenizers, SentencePieceFiles) {
  const TempFolder folder;
  folder.put("tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 2})");
  folder.put("spiece.model", small_sentencepiece());
  const auto tokenizer = load_tokenizer(folder.path());
  // ▁ab costs 3, ▁ and ab 3.5; spaces at the ends go and others are joined; </s> ends the text.
  EXPECT_EQ(tokenizer->encode(" ab  ab "), (Ids{7, 7, 2}));
  EXPECT_EQ(tokenizer->encode("aab", false), (Ids{3, 4, 6}));
  EXPECT_EQ(tokenizer->encode("xyab", false), (Ids{3, 0, 6})) << "a run of unknown characters is one token";
  EXPECT_EQ(tokenizer->token_to_id("<extra_id_1>"), 9) << "the last first";
  EXPECT_EQ(tokenizer->vocab_size(), 11);
  EXPECT_FALSE(tokenizer->is_special(8)) << "defined by a user: text like any other";
  EXPECT_EQ(tokenizer->decode(Ids{7, 8, 7, 2}), "ab<u> ab");

  const std::string good = small_sentencepiece();
  std::mt19937 random(22);
  for (int round = case_count(500); round > 0; --round) {
    std::string text = good;
    if (random() % 2 == 0) text.resize(random() % text.size());
    for (int n = static_cast<int>(random() % 4); n > 0 && !text.empty(); --n) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    folder.put("spiece.model", text);
    try {
      (void)load_tokenizer(folder.path())->encode("ab x");
    } catch (const FileError&) {
      // One clear error.
    }
  }
}

TEST(HostileTokenizers, OtherFiles) {
  const TempFolder folder;
  folder.put("qwen.tiktoken", "YQ== 0\nYg== 1\nYWI= 2\n");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("abb"), (Ids{2, 1}));
  for (const char* bad : {"YQ== 0\nYQ== 1\n", "YQ== 0\nYg== 0\n", "YQ= 0\n", "YQ== -1\n",
                          "YQ== 99999999999\n", "YQ==\n", "", "YQ== 0x\n"}) {
    folder.put("qwen.tiktoken", bad);
    EXPECT_CONTAINS(error_of<FileError>([&] { (void)load_tokenizer(folder.path()); }), "qwen.tiktoken");
  }
  std::filesystem::remove(folder / "qwen.tiktoken");
  folder.put("unknown.tiktoken", "YQ== 0\n");
  EXPECT_CONTAINS(error_of<FileError>([&] { (void)load_tokenizer(folder.path()); }), "cl100k_base");

  folder.put("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  folder.put("merges.txt", "#version: 0.2\na b\n");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("abb"), (Ids{2, 1}));
  folder.put("merges.txt", "#version: 0.2\na c\n");
  EXPECT_CONTAINS(error_of<FileError>([&] { (void)load_tokenizer(folder.path()); }), "line 2 is 'a c'");
  folder.put("tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})");
  EXPECT_CONTAINS(error_of<FileError>([&] { (void)load_tokenizer(folder.path()); }), "CLIPTokenizer");
  std::filesystem::remove(folder / "tokenizer_config.json");
  std::filesystem::remove(folder / "vocab.json");
  std::filesystem::remove(folder / "unknown.tiktoken");

  folder.put("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhe\n##llo\n!\n");
  const auto bert = load_tokenizer(folder.path());
  EXPECT_EQ(bert->encode("Hello! x"), (Ids{2, 5, 6, 7, 1, 3}));
  EXPECT_EQ(bert->decode(Ids{2, 5, 6, 7, 3}), "hello!");
  EXPECT_EQ(bert->token_bytes(6), "llo");
  EXPECT_EQ(bert->token_bytes(5), " he");
  folder.put("vocab.txt", "a\n");
  EXPECT_CONTAINS(error_of<FileError>([&] { (void)load_tokenizer(folder.path()); }), "[UNK]");
}

TEST(HostileTokenizers, GgufVocabularies) {
  GgufVocabulary good;
  good.model = "gpt2";
  good.pre = "qwen2";
  good.tokens = {"a", "b", "ab", "<s>"};
  good.token_types = {1, 1, 1, 3};
  good.merges = {"a b"};
  EXPECT_EQ(make_tokenizer(good, "f")->encode("abb<s>"), (Ids{2, 1, 3}));
  const auto error = [&](auto&& change) {
    GgufVocabulary bad = good;
    change(bad);
    const auto message = error_of<FileError>([&] { (void)make_tokenizer(bad, "f.gguf"); });
    EXPECT_TRUE(message.starts_with("f.gguf")) << message;
    return message;
  };
  EXPECT_CONTAINS(error([](auto& v) { v.model = "rwkv"; }), "'rwkv'");
  EXPECT_CONTAINS(error([](auto& v) { v.pre = "new"; }), "'new'");
  EXPECT_CONTAINS(error([](auto& v) { v.tokens.clear(); }), "no tokens");
  EXPECT_CONTAINS(error([](auto& v) { v.merges = {"a c"}; }), "'a c'");
  EXPECT_CONTAINS(error([](auto& v) { v.merges.clear(); }), "no merges");
  EXPECT_CONTAINS(error([](auto& v) { v.token_types.pop_back(); }), "token types");
  EXPECT_CONTAINS(error([](auto& v) { v.model = "llama"; }), "no scores");
  EXPECT_CONTAINS(error([](auto& v) { v.tokens[0] = std::string(10'000, 'a'); }), "10000 bytes");
  good.bos_id = 4294967295;
  good.add_bos = true;
  EXPECT_EQ(make_tokenizer(good, "f")->encode("a"), Ids{0}) << "an id that is none is no id";
  // Every name that is known has expressions that compile.
  for (const char* pre :
       {"default",     "gpt-2",   "llama-bpe", "qwen2",      "qwen35",     "deepseek-llm", "deepseek-coder",
        "deepseek-v3", "smollm",  "starcoder", "refact",     "command-r",  "olmo",         "falcon",
        "tekken",      "gpt-4o",  "tiny_aya",  "youtu",      "spark2.5",   "bloom",        "viking",
        "chameleon",   "kimi-k2", "superbpe",  "bailingmoe", "seed-coder", "ufakzeka",     "laguna",
        "exaone-moe",  "jais-2",  "minicpm5",  "dbrx",       "roberta-bpe"}) {
    good.pre = pre;
    EXPECT_EQ(make_tokenizer(good, "f")->encode("ab", false), Ids{2}) << pre;
  }

  GgufVocabulary bert;
  bert.model = "bert";
  bert.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\xE2\x96\x81he", "llo"};
  bert.token_types = {3, 2, 3, 3, 1, 1};
  bert.unknown_id = 1;
  bert.cls_id = 2;
  bert.separator_id = 3;
  EXPECT_EQ(make_tokenizer(bert, "f")->encode("HELLO x"), (Ids{2, 4, 5, 1, 3}));
}

}  // namespace
}  // namespace caldera::testing
