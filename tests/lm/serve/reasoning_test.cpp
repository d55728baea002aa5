// What a model thinks before it answers: "reasoning_content".
#include <gtest/gtest.h>

#include <array>

#include "lm/serve/service/after_mark.h"
#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"

namespace caldera {
namespace {

using serve::Json;
using testing::events_of;
using testing::kChat;
using testing::kJson;
using testing::parsed;
using testing::TestServer;

Json ask(const TestServer& server, const Json& more = Json::object()) {
  Json request{{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  request.update(more);
  return parsed(server.client().Post(kChat, request.dump(), kJson));
}

// The joined deltas of a stream, by field, and the order in which fields first came.
struct Streamed {
  std::string content, reasoning, order, finish;
  Json calls = Json::array();
};

Streamed streamed(const TestServer& server, const Json& more = Json::object()) {
  Json request{{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"stream", true}};
  request.update(more);
  const auto result = server.client().Post(kChat, request.dump(), kJson);
  Streamed all;
  for (const Json& event : events_of(result->body)) {
    for (const Json& choice : event["choices"]) {
      const Json& delta = choice["delta"];
      const std::string reasoning = delta.value("reasoning_content", "");
      const std::string content = delta.contains("content") ? delta.value("content", "") : "";
      if (!reasoning.empty() && !all.order.ends_with('r')) all.order += 'r';
      if (!content.empty() && !all.order.ends_with('c')) all.order += 'c';
      all.reasoning += reasoning;
      all.content += content;
      // A call's first piece has its id.
      if (delta.contains("tool_calls") && delta["tool_calls"][0].contains("id"))
        all.calls.push_back(delta["tool_calls"][0]);
      if (!choice["finish_reason"].is_null()) all.finish = choice["finish_reason"];
    }
  }
  return all;
}

TEST(ServeReasoning, IsSetApartWholeAndStreamed) {
  TestServer server;
  server.engine.reply = [](const std::string&) {
    return std::string("<think>\nTwo and two.\n</think>\n\nFour <think>.");
  };
  const Json body = ask(server);
  const Json& message = body["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "Two and two.");
  EXPECT_EQ(message["content"], "Four <think>.");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  // A byte a token: from the end of the first mark to that of the second.
  EXPECT_EQ(body["usage"]["completion_tokens_details"]["reasoning_tokens"],
            static_cast<int>(std::string(">\nTwo and two.\n</think>").size()));
  const Streamed all = streamed(server);
  EXPECT_EQ(all.reasoning, "Two and two.");
  EXPECT_EQ(all.content, "Four <think>.");
  EXPECT_EQ(all.order, "rc");
  EXPECT_EQ(all.finish, "stop");
}

TEST(ServeReasoning, MayBeOpenedByTheTemplate) {
  TestServer server;
  server.model.chat.emplace(
      "{{ messages[0].content }}{% if enable_thinking is not defined or enable_thinking %}<think>\n"
      "{% else %}<think>\n\n</think>\n\n{% endif %}");
  server.engine.reply = [](const std::string&) { return std::string("so</think>yes"); };
  const Json message = ask(server)["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "so");
  EXPECT_EQ(message["content"], "yes");
  server.engine.reply = [](const std::string&) { return std::string("yes"); };
  const Json plain = ask(server, {{"chat_template_kwargs", {{"enable_thinking", false}}}});
  EXPECT_FALSE(plain["choices"][0]["message"].contains("reasoning_content"));
  EXPECT_EQ(plain["choices"][0]["message"]["content"], "yes");
  // Cut off in the midst of it.
  server.engine.reply = [](const std::string&) { return std::string("endless thought"); };
  const Json cut = ask(server, {{"max_tokens", 7}});
  EXPECT_EQ(cut["choices"][0]["message"]["reasoning_content"], "endless");
  EXPECT_EQ(cut["choices"][0]["message"]["content"], "");
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "length");
}

TEST(ServeReasoning, StaysWhereItIsOnDemandAndInCompletions) {
  TestServer server;
  server.engine.reply = [](const std::string&) { return std::string("<think>a</think>b"); };
  const Json text =
      parsed(server.client().Post("/v1/completions", R"({"prompt":"x","max_tokens":50})", kJson));
  EXPECT_EQ(text["choices"][0]["text"], "<think>a</think>b");
  server.model.split_thinking = false;
  EXPECT_EQ(ask(server)["choices"][0]["message"]["content"], "<think>a</think>b");
}

TEST(ServeReasoning, CallsOfToolsFollowIt) {
  TestServer server;
  server.engine.reply = [](const std::string&) {
    return std::string(
        "<think>Call <tool_call>?</think>\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n"
        "</tool_call>");
  };
  const Json tools{{"tools", {{{"type", "function"}, {"function", {{"name", "add"}}}}}}};
  const Json choice = ask(server, tools)["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["reasoning_content"], "Call <tool_call>?");
  EXPECT_TRUE(choice["message"]["content"].is_null());
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], R"({"a":1})");
  const Streamed all = streamed(server, tools);
  EXPECT_EQ(all.reasoning, "Call <tool_call>?");
  EXPECT_EQ(all.content, "");
  ASSERT_EQ(all.calls.size(), 1U);
  EXPECT_EQ(all.calls[0]["function"]["name"], "add");
  EXPECT_EQ(all.finish, "tool_calls");
}

TEST(ServeReasoning, StopsAndLogProbabilitiesHoldForAllOfTheText) {
  TestServer server;
  server.engine.reply = [](const std::string&) { return std::string("<think>ab</think>cd<e"); };
  const Json body = ask(server, {{"logprobs", true}, {"stop", {"d<"}}});
  EXPECT_EQ(body["choices"][0]["message"]["reasoning_content"], "ab");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "c");
  std::string tokens;
  for (const Json& token : body["choices"][0]["logprobs"]["content"]) tokens += token["token"];
  EXPECT_TRUE(tokens.starts_with("<think>ab</think>c")) << tokens;
  EXPECT_EQ(ask(server, {{"stop", {"b</"}}})["choices"][0]["message"]["reasoning_content"], "a");
}

// A vocabulary with tokens that end a mark and go on: "</think", ">\n", ">{", "x", and an end.
class FewTokens final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view, bool) const override { return {}; }
  std::string decode(std::span<const std::int32_t> ids, bool) const override {
    static const std::array<const char*, 5> kTexts{"</think", ">\n", ">{", "x", ""};
    std::string text;
    for (const std::int32_t id : ids) text += kTexts.at(static_cast<std::size_t>(id));
    return text;
  }
  std::int64_t vocab_size() const override { return 5; }
  std::optional<std::int32_t> bos_id() const override { return std::nullopt; }
  std::optional<std::int32_t> eos_id() const override { return 4; }
};

// Allows the end alone.
class Nothing final : public TokenConstraint {
 public:
  TokenSet allowed() override { return {&set_, 1}; }
  void accept(std::int32_t id) override {
    if (id != 4) throw ValueError("not allowed");
  }
  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<Nothing>(*this); }

 private:
  std::uint64_t set_ = 1U << 4U;
};

TEST(ServeReasoning, ConstraintsBeginBehindTheMark) {
  const FewTokens tokenizer;
  serve::AfterMark constraint(tokenizer, {4}, "</think>", std::make_shared<Nothing>());
  EXPECT_EQ(constraint.allowed()[0], 0b01111U);
  constraint.accept(2);
  constraint.accept(3);
  EXPECT_THROW(constraint.accept(4), ValueError);
  constraint.accept(0);
  EXPECT_EQ(constraint.allowed()[0], 0b01011U);  // ">{" would be part of what follows
  EXPECT_THROW(constraint.accept(2), ValueError);
  const std::unique_ptr<TokenConstraint> other = constraint.clone();
  constraint.accept(3);  // no mark, then
  EXPECT_EQ(constraint.allowed()[0], 0b01111U);
  constraint.accept(0);
  constraint.accept(1);
  EXPECT_EQ(constraint.allowed()[0], 0b10000U);
  EXPECT_THROW(constraint.accept(3), ValueError);
  EXPECT_EQ(other->allowed()[0], 0b01011U);
  other->accept(1);
  EXPECT_EQ(other->allowed()[0], 0b10000U);
}

TEST(ServeReasoning, SchemasDoNotHoldThinkingThatTheTemplateOpened) {
  TestServer server;
  const Json format{{"response_format", {{"type", "json_object"}}}, {"max_tokens", 3}};
  EXPECT_TRUE(ask(server, format)["choices"][0]["message"]["content"].get<std::string>().starts_with("{"));
  server.model.chat.emplace("{{ messages[0].content }}<think>\n");
  const Json message = ask(server, format)["choices"][0]["message"];
  EXPECT_EQ(message["content"], "");
  EXPECT_EQ(message["reasoning_content"].get<std::string>().size(), 3U);
  // It may not end before the object has come.
  const auto seen = server.engine.seen();
  EXPECT_FALSE(contains(seen.back().constraint->clone()->allowed(), testing::FakeEngine::kEos));
}

}  // namespace
}  // namespace caldera
