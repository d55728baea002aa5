// The forms of data files: conversations and pairs, from a line to the predictions that count.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/lm/base/io_test_support.h"
#include "training/data/dataset.h"
#include "training/data/example_files.h"
#include "training/data/forms/chat_format.h"

namespace caldera {
namespace {

using testing::error_of;
using testing::TempFolder;

// Writes a conversation as <role>content|, and says nothing of what is the assistant's.
const std::string kPlain =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";
// The same text; the assistant's content, without the bar, is marked.
const std::string kMarked =
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}|{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

ChatFormat format(const std::string& source) {
  return ChatFormat({.where = "model", .templates = {{"default", source}}, .special_tokens = {}});
}

Example read(const std::string& line, const std::string& source = kPlain) {
  const TempFolder folder;
  ChatFormat chat = format(source);
  return load_examples(folder.put("d.jsonl", line), {.chat = &chat}).examples.at(0);
}

// The bytes of the sequence whose predictions count.
std::string counted(const ExampleSet& set, std::int64_t row = 0, LossOn loss_on = LossOn::usual) {
  const TokenDataset data(set, ByteTokenizer(), {.seq_len = 200, .loss_on = loss_on});
  const std::int64_t all[] = {0};
  const Batch batch = data.batch(all);
  std::string text;
  for (std::int64_t i = 0; i < batch.seq_len; ++i) {
    const auto at = static_cast<std::size_t>(row * batch.seq_len + i);
    if (batch.weights[at] == 0) continue;
    text += batch.targets[at] < 256 ? static_cast<char>(batch.targets[at]) : '$';
  }
  return text;
}

const std::string kTalk =
    R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bc"},)"
    R"( {"role": "user", "content": "d"}, {"role": "assistant", "content": "ef"}]})";

TEST(DataForms, OfAConversationWhatTheAssistantSaysCounts) {
  const Example plain = read(kTalk);
  EXPECT_EQ(plain.text, "<user>a|<assistant>bc|<user>d|<assistant>ef|");
  EXPECT_TRUE(plain.rendered);
  // Without marks an answer reaches to where the next message begins; nothing is added at the end.
  EXPECT_EQ(counted({.examples = {plain}}), "bc|ef|");
  EXPECT_EQ(counted({.examples = {read(kTalk, kMarked)}}), "bcef");
}

TEST(DataForms, TheLossMayBeOnMoreOrLess) {
  const Example talk = read(kTalk, kMarked);
  EXPECT_EQ(counted({.examples = {talk}}, 0, LossOn::last), "ef");
  EXPECT_EQ(counted({.examples = {talk}}, 0, LossOn::completion), "bcef");
  EXPECT_EQ(counted({.examples = {talk}}, 0, LossOn::all), "user>a|<assistant>bc|<user>d|<assistant>ef|");
  const ExampleSet answer{.examples = {{.prompt = "ask", .text = "say"}}};
  EXPECT_EQ(counted(answer), "asksay$");
  EXPECT_EQ(counted(answer, 0, LossOn::completion), "say$");
  EXPECT_EQ(counted(answer, 0, LossOn::last), "say$");
}

TEST(DataForms, MessagesMayBeMarkedAsNotLearned) {
  const auto talk = [](const std::string& first, const std::string& second) {
    return R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bc")" +
           first + R"(}, {"role": "user", "content": "d"}, {"role": "assistant", "content": "ef")" + second +
           "}]}";
  };
  for (const std::string& source : {kPlain, kMarked}) {
    const std::string bar = source == kPlain ? "|" : "";
    EXPECT_EQ(counted({.examples = {read(talk(R"(, "train": false)", ""), source)}}), "ef" + bar);
    EXPECT_EQ(counted({.examples = {read(talk(R"(, "train": true)", R"(, "weight": 0)"), source)}}),
              "bc" + bar);
    EXPECT_EQ(counted({.examples = {read(talk(R"(, "train": null)", R"(, "weight": 1)"), source)}}),
              "bc" + bar + "ef" + bar);
    const Example none = read(talk(R"(, "train": false)", R"(, "train": false)"), source);
    EXPECT_TRUE(none.learned && none.learned->empty())
        << "nothing of it counts, and that is no error of the row";
    EXPECT_CONTAINS(error_of<FileError>([&] { read(talk(R"(, "train": 2)", ""), source); }),
                    "must be true or false");
    EXPECT_CONTAINS(error_of<FileError>([&] {
                      read(R"({"messages": [{"role": "user", "content": "a", "train": true},)"
                           R"( {"role": "assistant", "content": "b"}]})",
                           source);
                    }),
                    "only what the assistant says");
  }
}

TEST(DataForms, WhatIsLeftOutIsCountedByItsReason) {
  ExampleSet set;
  set.examples.push_back({.prompt = std::string(20, 'p'), .text = "x"});  // the prompt fills it
  set.examples.push_back({.prompt = "p", .text = std::string(30, 'x')});  // cut
  set.examples.push_back(
      {.text = "abc", .learned = std::vector<TextSpan>{}, .rendered = true});  // nothing counts
  set.examples.push_back({.text = "a", .rendered = true});                     // one token
  const TokenDataset data(set, ByteTokenizer(false), {.seq_len = 16, .loss_on = LossOn::completion});
  EXPECT_EQ(data.size(), 1);
  EXPECT_EQ(data.losses().prompt_fills, 1);
  EXPECT_EQ(data.losses().truncated, 1);
  EXPECT_EQ(data.losses().masked, 1);
  EXPECT_EQ(data.losses().too_short, 1);
  EXPECT_EQ(data.skipped(), 3);
}

TEST(DataForms, CompletionsOfMessages) {
  const Example e = read(R"({"prompt": [{"role": "user", "content": "a"}],)"
                         R"( "completion": [{"role": "assistant", "content": "bc"}]})");
  EXPECT_EQ(e.prompt, "<user>a|<assistant>");
  EXPECT_EQ(e.text, "bc|");
  EXPECT_EQ(counted({.examples = {e}}), "bc|");
}

TEST(DataForms, PairsBecomeTwoSequencesWithoutTheirPrompts) {
  const Example e = read(R"({"prompt": "pr", "chosen": "good", "rejected": "bad"})");
  const ExampleSet set{.examples = {e}};
  EXPECT_EQ(counted(set, 0), "good$");  // $: eos
  EXPECT_EQ(counted(set, 1), "bad$");
  const TokenDataset data(set, ByteTokenizer(), {.seq_len = 200});
  EXPECT_EQ(data.size(), 1);
  EXPECT_EQ(data.sequences_per_example(), 2);
  EXPECT_EQ(data.counted(), 5 + 4);
}

TEST(DataForms, PairsOfConversations) {
  const std::string user = R"({"role": "user", "content": "a"})";
  const auto says = [](const std::string& text) {
    return R"({"role": "assistant", "content": ")" + text + R"("})";
  };
  // The prompt apart, and as what both begin with.
  for (const std::string& line : {R"({"prompt": [)" + user + R"(], "chosen": [)" + says("x") +
                                      R"(], "rejected": [)" + says("yy") + "]}",
                                  R"({"chosen": [)" + user + "," + says("x") + R"(], "rejected": [)" + user +
                                      "," + says("yy") + "]}"}) {
    const Example e = read(line);
    EXPECT_EQ(e.prompt, "<user>a|<assistant>") << line;
    EXPECT_EQ(e.text, "x|");
    EXPECT_EQ(e.rejected, "yy|");
    EXPECT_EQ(counted({.examples = {e}}, 1), "yy|");
  }
}

TEST(DataForms, TokensThatReachAcrossABoundaryMustBePredicted) {
  // Tokens of two bytes: the prompt "abc" ends within the second.
  class Twos final : public Tokenizer {
   public:
    std::vector<std::int32_t> encode(std::string_view text, bool) const override {
      std::vector<std::int32_t> ids;
      for (std::size_t i = 0; i < text.size(); i += 2)
        ids.push_back(static_cast<unsigned char>(text[i]) * 256 +
                      (i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0));
      return ids;
    }
    std::string decode(std::span<const std::int32_t>, bool) const override { return {}; }
    std::int64_t vocab_size() const override { return 65536; }
    std::optional<std::int32_t> bos_id() const override { return std::nullopt; }
    std::optional<std::int32_t> eos_id() const override { return std::nullopt; }
  };
  const ExampleSet set{
      .examples = {
          {.prompt = {}, .text = "abcdefgh", .learned = std::vector<TextSpan>{{3, 5}}, .rendered = true}}};
  const TokenDataset data(set, Twos(), {.seq_len = 16});
  EXPECT_EQ(data.counted(),
            1);  // "cd" begins before the span, reaches into it and counts; "ef" ends behind it
}

TEST(DataForms, ErrorsNameFileAndLine) {
  const auto error = [](const std::string& line, const std::string& source = kPlain) {
    return error_of<FileError>([&] { read("\n" + line, source); });
  };
  EXPECT_CONTAINS(error(R"({"messages": []})"), "d.jsonl:2: field 'messages'");
  EXPECT_CONTAINS(error(R"({"messages": "x"})"), "list of messages");
  EXPECT_CONTAINS(error(R"({"messages": [{"content": "x"}]})"), "'role'");
  EXPECT_CONTAINS(error(R"({"messages": [{"role": "user", "content": "x"}]})"),
                  "no message of the assistant");
  EXPECT_CONTAINS(
      error(R"({"messages": [{"role": "user", "content": "x"}]})", "{{ raise_exception('no!') }}"),
      "d.jsonl:2: chat template");
  EXPECT_CONTAINS(error(kTalk, "{{ messages[-1].content }}{% if add_generation_prompt %}:{% endif %}"),
                  "differently");
  EXPECT_CONTAINS(error(R"({"prompt": "p", "chosen": "x"})"), "'rejected'");
  EXPECT_CONTAINS(error(R"({"chosen": [{"role": "user", "content": "x"}],)"
                        R"( "rejected": [{"role": "user", "content": "x"}]})"),
                  "say the same");
  EXPECT_CONTAINS(error(R"({"txt": "x"})"), R"(none of the forms {"prompt", "chosen", "rejected"})");
  const TempFolder folder;
  const auto path = folder.put("d.jsonl", kTalk);
  EXPECT_CONTAINS(error_of<FileError>([&] { load_examples(path); }), "needs a chat template");
}

TEST(DataForms, PairsAndTextsDoNotMix) {
  const ExampleSet set{
      .examples = {read(R"({"text": "x"})"), read(R"({"prompt": "p", "chosen": "a", "rejected": "b"})")}};
  EXPECT_CONTAINS(error_of<ValueError>([&] { TokenDataset(set, ByteTokenizer(), {.seq_len = 8}); }),
                  "of 2 examples 1 are pairs");
}

}  // namespace
}  // namespace caldera
