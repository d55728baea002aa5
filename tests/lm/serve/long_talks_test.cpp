// Conversations that the context has no room for: refused, or without what was said first, as is asked for.
#include <gtest/gtest.h>

#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"

namespace caldera {
namespace {

using serve::Json;
using testing::kChat;
using testing::kJson;
using testing::TestServer;

/// A server of 4,096 positions, a byte each, and the prompt that it was given last.
class LongTalks : public ::testing::Test {
 protected:
  LongTalks() {
    server.engine.reply = [this](const std::string& seen) {
      prompt = seen;
      return std::string("Hm.");
    };
  }
  int ask(const char* path, const Json& body) {
    prompt.clear();
    const auto result = server.client().Post(path, body.dump(), kJson);
    answer = Json::parse(result->body, nullptr, false);
    return result->status;
  }
  /// Turns of 600 bytes and more: "0000…", "1111…".
  static Json turns(int count) {
    Json messages = Json::array({{{"role", "system"}, {"content", "S"}}});
    for (int i = 0; i < count; ++i) {
      messages.push_back({{"role", "user"}, {"content", std::string(500, static_cast<char>('0' + i))}});
      messages.push_back({{"role", "assistant"}, {"content", std::string(80, static_cast<char>('a' + i))}});
    }
    messages.push_back({{"role", "user"}, {"content", "Last"}});
    return messages;
  }
  static std::string turn(int i) {
    return "user:" + std::string(500, static_cast<char>('0' + i)) +
           "\nassistant:" + std::string(80, static_cast<char>('a' + i)) + "\n";
  }

  TestServer server;
  std::string prompt;
  Json answer;
};

TEST_F(LongTalks, GoWithoutTheirFirstTurnsWhereThatIsAskedFor) {
  Json body{{"messages", turns(8)}, {"max_tokens", 100}};
  EXPECT_EQ(ask(kChat, body), 400);
  EXPECT_EQ(answer["error"]["code"], "context_length_exceeded");
  body["truncation"] = "disabled";
  EXPECT_EQ(ask(kChat, body), 400);
  body["truncation"] = "auto";
  ASSERT_EQ(ask(kChat, body), 200) << answer.dump();
  // A turn has 597 bytes: of 4,096, 100 for the answer, six have room beside the system's line and the last.
  std::string kept = "system:S\n";
  for (int i = 2; i < 8; ++i) kept += turn(i);
  EXPECT_EQ(prompt, kept + "user:Last\nassistant:");
  // As much room for the answer as is asked for, a quarter at most.
  body["max_tokens"] = 3000;
  ASSERT_EQ(ask(kChat, body), 200);
  kept = "system:S\n";
  for (int i = 3; i < 8; ++i) kept += turn(i);
  EXPECT_EQ(prompt, kept + "user:Last\nassistant:");
  // One that fits is left as it is.
  body["messages"] = turns(2);
  ASSERT_EQ(ask(kChat, body), 200);
  EXPECT_EQ(prompt, "system:S\n" + turn(0) + turn(1) + "user:Last\nassistant:");
  // What is said last stays, whatever its length.
  body["messages"].back()["content"] = std::string(5000, 'x');
  EXPECT_EQ(ask(kChat, body), 400);
  body["truncation"] = "always";
  EXPECT_EQ(ask(kChat, body), 400);
  EXPECT_EQ(answer["error"]["param"], "truncation");
}

TEST_F(LongTalks, GoWithoutTheFirstCallsOfOneTurn) {
  Json messages = Json::array({{{"role", "user"}, {"content", "Do it"}}});
  for (int i = 0; i < 9; ++i) {
    messages.push_back({{"role", "assistant"}, {"content", "call " + std::to_string(i)}});
    messages.push_back({{"role", "tool"}, {"content", std::string(700, static_cast<char>('0' + i))}});
  }
  ASSERT_EQ(ask(kChat, {{"messages", messages}, {"max_tokens", 10}, {"truncation", "auto"}}), 200);
  std::string kept = "user:Do it\n";
  for (int i = 4; i < 9; ++i)
    kept += "assistant:call " + std::to_string(i) + "\ntool:" + std::string(700, static_cast<char>('0' + i)) +
            "\n";
  EXPECT_EQ(prompt, kept + "assistant:");
}

TEST_F(LongTalks, AreToldInTheWordsOfEachApi) {
  Json input = turns(8);
  ASSERT_EQ(ask("/v1/responses", {{"input", input}, {"truncation", "auto"}, {"max_output_tokens", 100}}), 200)
      << answer.dump();
  EXPECT_EQ(answer["truncation"], "auto");
  EXPECT_TRUE(prompt.starts_with("system:S\nuser:2")) << prompt.substr(0, 40);
  EXPECT_EQ(ask("/v1/responses", {{"input", input}}), 400);
  ASSERT_EQ(ask("/v1/responses", {{"input", "a"}}), 200);
  EXPECT_EQ(answer["truncation"], "disabled");
  // Ollama's clients need not ask.
  Json body{{"messages", turns(8)}, {"stream", false}, {"options", {{"num_predict", 100}}}};
  ASSERT_EQ(ask("/api/chat", body), 200) << answer.dump();
  EXPECT_TRUE(prompt.starts_with("system:S\nuser:2")) << prompt.substr(0, 40);
  body["truncate"] = false;
  EXPECT_EQ(ask("/api/chat", body), 400);
}

TEST_F(LongTalks, TakeTheLastTokensOfAPrompt) {
  const char* path = "/v1/completions";
  ASSERT_EQ(
      ask(path, {{"prompt", "abcdef"}, {"truncate_prompt_tokens", 4}, {"max_tokens", 3}, {"echo", true}}),
      200);
  EXPECT_EQ(prompt, "cdef");
  EXPECT_EQ(answer["choices"][0]["text"], "cdefHm.");
  ASSERT_EQ(ask(path, {{"prompt", "abc"}, {"truncate_prompt_tokens", 4}}), 200);
  EXPECT_EQ(prompt, "abc");
  const std::string text = std::string(3000, 'a') + std::string(2000, 'b');
  ASSERT_EQ(ask(path, {{"prompt", text}, {"truncate_prompt_tokens", -1}, {"max_tokens", 96}}), 200);
  EXPECT_EQ(prompt, std::string(2000, 'a') + std::string(2000, 'b'));
  for (const int wrong : {0, -2}) {
    EXPECT_EQ(ask(path, {{"prompt", "abc"}, {"truncate_prompt_tokens", wrong}}), 400);
    EXPECT_EQ(answer["error"]["param"], "truncate_prompt_tokens");
  }
}

}  // namespace
}  // namespace caldera
