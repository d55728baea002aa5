// Log-probabilities as clients read them: tokens with their spaces and bytes, and those of the prompt.
#include <gtest/gtest.h>

#include "lm/serve/service/replies.h"
#include "lm/serve/service/sequence.h"
#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"

namespace caldera {
namespace {

using serve::Json;
using testing::kJson;
using testing::parsed;
using testing::TestServer;

/// Tokens as SentencePiece has them: words carry the space before them, which a text's first one loses.
class WordTokenizer : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view, bool) const override { return {}; }
  std::string decode(std::span<const std::int32_t> ids, bool) const override {
    std::string text;
    for (const std::int32_t id : ids) text += token_bytes(id);
    return text.starts_with(' ') ? text.substr(1) : text;
  }
  std::int64_t vocab_size() const override { return std::ssize(kBytes); }
  std::optional<std::int32_t> bos_id() const override { return 0; }
  std::optional<std::int32_t> eos_id() const override { return std::nullopt; }
  bool is_special(std::int32_t id) const override { return id == 0; }
  std::string token_bytes(std::int32_t id) const override { return kBytes[static_cast<std::size_t>(id)]; }

 private:
  inline static const std::vector<std::string> kBytes{"",   " Once", ",",        " there", " was",
                                                      " a", "a",     "\xE2\x82", "\xAC"};
};

Json reported(const std::vector<std::int32_t>& prompt, const std::vector<std::int32_t>& ids, bool echo) {
  const WordTokenizer tokenizer;
  serve::SequenceOptions options;
  if (echo) options.echo = tokenizer.decode(prompt, true);
  if (echo) options.scored_prompt = prompt;
  serve::Sequence sequence(tokenizer, options);
  serve::ReplyHead head = serve::make_head("m", false, true);
  serve::Reply reply(head, 1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    TokenEvent event;
    if (i == 0 && echo)
      for (std::size_t p = 1; p < prompt.size(); ++p)
        event.prompt_reports.push_back({{prompt[p], -0.25}, {}});
    event.id = ids[i];
    event.report = TokenReport{{ids[i], -0.5}, {{5, -1.0}, {6, -2.0}}};
    event.text = tokenizer.token_bytes(ids[i]);  // of a text that goes on
    if (i + 1 == ids.size()) event.finish = FinishReason::length;
    reply.add(sequence.take(event));
  }
  return reply.json({})["choices"][0];
}

TEST(LogProbabilityReplies, TokensKeepTheirSpaces) {
  const Json choice = reported({}, {2, 3, 4, 5}, false);
  EXPECT_EQ(choice["text"], ", there was a");
  EXPECT_EQ(choice["logprobs"]["tokens"].dump(), R"([","," there"," was"," a"])");
  EXPECT_EQ(choice["logprobs"]["text_offset"].dump(), "[0,1,7,11]");
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][0].dump(), R"({" a":-1.0,"a":-2.0,",":-0.5})");
}

TEST(LogProbabilityReplies, PartsOfCharactersAreBytes) {
  const Json choice = reported({}, {7, 8, 2}, false);
  EXPECT_EQ(choice["logprobs"]["tokens"].dump(), R"(["bytes:\\xe2\\x82","bytes:\\xac",","])");
  EXPECT_EQ(choice["logprobs"]["text_offset"].dump(), "[0,1,1]");
}

TEST(LogProbabilityReplies, ThePromptsFirstTokenHasNone) {
  const Json choice = reported({0, 1, 2, 3}, {4, 5}, true);
  const Json& told = choice["logprobs"];
  EXPECT_EQ(told["tokens"].dump(), R"(["","Once",","," there"," was"," a"])");
  EXPECT_EQ(told["text_offset"].dump(), "[0,0,4,5,11,15]");
  EXPECT_EQ(told["token_logprobs"].dump(), "[null,-0.25,-0.25,-0.25,-0.5,-0.5]");
  EXPECT_TRUE(told["top_logprobs"][0].is_null());
}

// The requests of lm-evaluation-harness ("local-completions"): log-likelihoods of what follows a context.
TEST(LogProbabilityReplies, LikelihoodsOfPromptsAreToldAsHarnessesAsk) {
  TestServer server;
  for (const int most : {0, 1}) {
    const Json request{{"model", "tiny"},  {"prompt", {{104, 105, 33}, {97, 98}}},
                       {"temperature", 0}, {"max_tokens", most},
                       {"logprobs", 1},    {"seed", 1234},
                       {"echo", true}};
    const Json answer = parsed(server.client().Post("/v1/completions", request.dump(), kJson));
    const std::vector<std::string> texts{"hi!", "ab"};
    for (std::size_t i = 0; i < 2; ++i) {
      const Json& choice = answer["choices"][i];
      const Json& told = choice["logprobs"];
      const std::string text = texts[i] + (most == 1 ? "H" : "");
      EXPECT_EQ(choice["text"], text);
      EXPECT_EQ(choice["finish_reason"], "length");
      EXPECT_EQ(told["tokens"].size(), text.size());
      EXPECT_EQ(told["token_logprobs"].size(), text.size());
      EXPECT_TRUE(told["token_logprobs"][0].is_null());
      for (std::size_t t = 1; t < texts[i].size(); ++t) {
        EXPECT_EQ(told["token_logprobs"][t], -static_cast<double>(t) / 4);
        EXPECT_EQ(told["top_logprobs"][t].size(), 1U);
        EXPECT_EQ(told["top_logprobs"][t][texts[i].substr(t, 1)], told["token_logprobs"][t]);
      }
    }
    EXPECT_EQ(answer["usage"]["completion_tokens"], 2 * most);
  }
  const auto streamed = server.client().Post(
      "/v1/completions", R"({"prompt":"ab","max_tokens":0,"logprobs":0,"echo":true,"stream":true})", kJson);
  EXPECT_EQ(testing::events_of(streamed->body)[0]["choices"][0]["logprobs"]["tokens"].size(),
            3U);  // bos is one
  EXPECT_EQ(parsed(server.client().Post("/v1/completions", R"({"prompt":"ab","max_tokens":0})",
                                        kJson))["choices"][0]["text"],
            "");
}

}  // namespace
}  // namespace caldera
