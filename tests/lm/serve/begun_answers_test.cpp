// Answers that go on with what the last message began, what a server says of its own, and texts with what is
// else left out of them.
#include <gtest/gtest.h>

#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"

namespace caldera {
namespace {

using serve::Json;
using testing::FakeEngine;
using testing::kChat;
using testing::kJson;
using testing::TestServer;

/// A server, and the prompt that it was given last.
class BegunAnswers : public ::testing::Test {
 protected:
  BegunAnswers() {
    server.engine.reply = [this](const std::string& seen) {
      prompt = seen;
      return said;
    };
  }
  int ask(const char* path, const Json& body) {
    prompt.clear();
    const auto result = server.client().Post(path, body.dump(), kJson);
    answer = Json::parse(result->body, nullptr, false);
    return result->status;
  }
  static Json begun(const char* text) {
    return Json::array({{{"role", "user"}, {"content", "Hi"}}, {{"role", "assistant"}, {"content", text}}});
  }

  TestServer server;
  std::string prompt, said = " rest";
  Json answer;
};

TEST_F(BegunAnswers, GoOnWhereTheLastMessageEnds) {
  Json body{{"messages", begun("The answer is")}, {"continue_final_message", true}};
  ASSERT_EQ(ask(kChat, body), 200) << answer.dump();
  EXPECT_EQ(prompt, "user:Hi\nassistant:The answer is");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], " rest");
  body["messages"] = begun("ends in blanks \n");
  ASSERT_EQ(ask(kChat, body), 200);
  EXPECT_EQ(prompt, "user:Hi\nassistant:ends in blanks \n") << "this template keeps them";
  body["messages"] = begun("twice twice");
  body["add_generation_prompt"] = false;
  ASSERT_EQ(ask(kChat, body), 200);
  EXPECT_EQ(prompt, "user:Hi\nassistant:twice twice");
  EXPECT_EQ(ask("/apply-template", body), 200);
  EXPECT_EQ(answer["prompt"], "user:Hi\nassistant:twice twice");
  body.erase("continue_final_message");
  ASSERT_EQ(ask(kChat, body), 200);
  EXPECT_EQ(prompt, "user:Hi\nassistant:twice twice\n");
}

TEST_F(BegunAnswers, LoseTheirBlanksWhereTheTemplateTakesThem) {
  server.model.chat.emplace(
      "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</s>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}");
  ASSERT_EQ(ask(kChat, {{"messages", begun("So: ")}, {"continue_final_message", true}}), 200);
  EXPECT_EQ(prompt, "<user>Hi</s><assistant>So:");
  server.model.chat.emplace("{{ messages[0].content }}");
  EXPECT_EQ(ask(kChat, {{"messages", begun("So: ")}, {"continue_final_message", true}}), 400);
  EXPECT_EQ(answer["error"]["param"], "continue_final_message");
}

TEST_F(BegunAnswers, AreRefusedWhereNothingCanGoOn) {
  const auto refused = [&](Json body) {
    body["continue_final_message"] = true;
    EXPECT_EQ(ask(kChat, body), 400) << answer.dump();
    EXPECT_EQ(answer["error"]["param"], "continue_final_message");
  };
  refused({{"messages", begun("a")}, {"add_generation_prompt", true}});
  refused({{"messages", begun(" \n")}});
  refused({{"messages", begun("")}});
  Json call = begun("a");
  call[1]["tool_calls"] = Json::array({{{"type", "function"}, {"function", {{"name", "f"}}}}});
  refused({{"messages", call}});
  call[1]["content"] = nullptr;
  call[1]["tool_calls"] = Json::array();
  refused({{"messages", call}});
}

TEST_F(BegunAnswers, AreUsualInTwoApis) {
  ASSERT_EQ(ask("/v1/messages", {{"messages", begun("The answer is")}, {"max_tokens", 9}}), 200)
      << answer.dump();
  EXPECT_EQ(prompt, "user:Hi\nassistant:The answer is");
  EXPECT_EQ(answer["content"][0]["text"], " rest");
  ASSERT_EQ(ask("/api/chat", {{"messages", begun("The answer is")}, {"stream", false}}), 200);
  EXPECT_EQ(prompt, "user:Hi\nassistant:The answer is");
  ASSERT_EQ(ask("/api/chat", {{"messages", begun("")}, {"stream", false}}), 200);
  EXPECT_EQ(prompt, "user:Hi\nassistant:\nassistant:");
  ASSERT_EQ(ask("/v1/messages", {{"messages", begun("")}, {"max_tokens", 9}}), 200) << answer.dump();
  EXPECT_EQ(prompt, "user:Hi\nassistant:\nassistant:");
  ASSERT_EQ(ask("/api/chat", {{"messages", begun(" \n")}, {"stream", false}}), 200) << answer.dump();
  EXPECT_TRUE(prompt.ends_with("\nassistant:")) << prompt;
}

TEST_F(BegunAnswers, EndAfterTenContextsWhereTheContextShifts) {
  Json body{{"prompt", "Once"}, {"raw", true}, {"stream", false}, {"shift", true}};
  ASSERT_EQ(ask("/api/generate", body), 200) << answer.dump();
  const std::int64_t context = server.engine.context();
  EXPECT_EQ(server.engine.seen().back().max_tokens, 10 * context);
  body["options"] = {{"num_predict", 7}};
  ASSERT_EQ(ask("/api/generate", body), 200);
  EXPECT_EQ(server.engine.seen().back().max_tokens, 7);
  body["options"] = {{"num_predict", -1}};
  body["shift"] = false;
  ASSERT_EQ(ask("/api/generate", body), 200);
  EXPECT_LE(server.engine.seen().back().max_tokens, context);
  EXPECT_GT(server.engine.seen().back().max_tokens, 16);
}

TEST_F(BegunAnswers, TheServersPromptGoesBeforeConversationsThatHaveNone) {
  server.model.system_prompt = "Be kind.";
  const Json hi{{"role", "user"}, {"content", "Hi"}};
  ASSERT_EQ(ask(kChat, {{"messages", Json::array({hi})}}), 200);
  EXPECT_EQ(prompt, "system:Be kind.\nuser:Hi\nassistant:");
  for (const char* role : {"system", "developer"}) {
    ASSERT_EQ(ask(kChat, {{"messages", Json::array({{{"role", role}, {"content", "S"}}, hi})}}), 200);
    EXPECT_EQ(prompt, std::string(role) + ":S\nuser:Hi\nassistant:");
  }
  ASSERT_EQ(ask("/v1/messages", {{"messages", Json::array({hi})}, {"max_tokens", 9}}), 200);
  EXPECT_EQ(prompt, "system:Be kind.\nuser:Hi\nassistant:");
  ASSERT_EQ(ask("/v1/responses", {{"input", "Hi"}, {"instructions", "S"}}), 200);
  EXPECT_EQ(prompt, "system:S\nuser:Hi\nassistant:");
  ASSERT_EQ(ask("/v1/completions", {{"prompt", "Hi"}}), 200);
  EXPECT_EQ(prompt, "Hi");
}

TEST_F(BegunAnswers, HaveSpecialTokensAndStopStringsWhereThatIsAskedFor) {
  Json body{{"prompt", "a"}, {"max_tokens", 9}, {"stop", "es"}};
  ASSERT_EQ(ask("/v1/completions", body), 200);
  EXPECT_EQ(answer["choices"][0]["text"], " r");
  body["include_stop_str_in_output"] = true;
  ASSERT_EQ(ask("/v1/completions", body), 200);
  EXPECT_EQ(answer["choices"][0]["text"], " res");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  // 256 is a special token.
  const auto shown = [&](const GenerateRequest& request) {
    return request.text.keeps_special != nullptr && request.text.keeps_special(256);
  };
  EXPECT_FALSE(shown(server.engine.seen().back()));
  body["skip_special_tokens"] = false;
  ASSERT_EQ(ask("/v1/completions", body), 200);
  EXPECT_TRUE(shown(server.engine.seen().back()));
  body["skip_special_tokens"] = true;
  body["spaces_between_special_tokens"] = false;
  ASSERT_EQ(ask("/v1/completions", body), 200);
  EXPECT_FALSE(shown(server.engine.seen().back()));
  ASSERT_EQ(ask(kChat, {{"messages", begun("a")}, {"skip_special_tokens", false}}), 200);
  EXPECT_TRUE(shown(server.engine.seen().back()));
}

TEST_F(BegunAnswers, MirostatAndShiftsAreAskedForByTheirNames) {
  Json body{{"prompt", "abc"}, {"mirostat", 2}, {"mirostat_tau", 4.5}, {"mirostat_eta", 0.3}};
  ASSERT_EQ(ask("/v1/completions", body), 200) << answer.dump();
  Mirostat mirostat = server.engine.seen().back().sampling.mirostat;
  EXPECT_TRUE(mirostat.on);
  EXPECT_EQ(mirostat.tau, 4.5);
  EXPECT_EQ(mirostat.eta, 0.3);
  body["mirostat"] = 1;
  EXPECT_EQ(ask("/v1/completions", body), 400);
  EXPECT_EQ(answer["error"]["param"], "mirostat");
  const Json options{{"mirostat", 2}, {"mirostat_tau", 3}, {"num_keep", 7}, {"num_predict", 5000}};
  ASSERT_EQ(
      ask("/api/chat", {{"messages", begun("a")}, {"options", options}, {"shift", true}, {"stream", false}}),
      200)
      << answer.dump();
  EXPECT_EQ(server.engine.seen().back().sampling.mirostat.tau, 3);
  EXPECT_EQ(server.engine.seen().back().shift_keeps, 7);
  EXPECT_EQ(server.engine.seen().back().max_tokens, 5000);

  const auto shift = [&](const Json& more) {
    Json request{{"prompt", "abc"}, {"context_shift", true}};
    request.update(more);
    EXPECT_EQ(ask("/v1/completions", request), 200) << answer.dump();
    return server.engine.seen().back();
  };
  EXPECT_EQ(shift({{"max_tokens", 9000}}).shift_keeps, 4);
  EXPECT_EQ(shift({{"max_tokens", 9000}}).max_tokens, 9000) << "beyond the context of 4,096";
  EXPECT_EQ(shift({{"n_keep", -1}}).shift_keeps, 4) << "the prompt, and what begins a text";
  EXPECT_EQ(shift({{"n_keep", 100000}}).shift_keeps, 2048) << "a half at most";
  ASSERT_EQ(ask(kChat, {{"messages", begun("a")}, {"context_shift", true}}), 200);
  EXPECT_EQ(server.engine.seen().back().max_tokens, 40960);
  EXPECT_EQ(ask("/v1/completions", {{"prompt", "abc"}, {"n_keep", 3}}), 400);
  EXPECT_EQ(answer["error"]["param"], "n_keep");
  ASSERT_EQ(ask("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 9000}}), 200);
  EXPECT_EQ(server.engine.seen().back().shift_keeps, std::nullopt);
  EXPECT_EQ(server.engine.seen().back().max_tokens, 4092);
}

TEST_F(BegunAnswers, RefusalsNameTheFieldsOfTheirApi) {
  const auto refused = [&](const Json& more, const char* path = "/api/chat") {
    Json body{{"stream", false}};
    if (path == std::string("/api/chat"))
      body["messages"] = begun("a");
    else
      body.update({{"prompt", "a"}, {"raw", true}});
    body.update(more);
    EXPECT_EQ(ask(path, body), 400) << body.dump();
    return answer["error"].is_string() ? answer["error"].get<std::string>() : answer.dump();
  };
  const auto option = [&](const char* name, const Json& value, const char* path = "/api/chat") {
    return refused({{"options", {{name, value}}}}, path);
  };
  for (const char* path : {"/api/chat", "/api/generate"}) {
    EXPECT_EQ(option("repeat_penalty", -1, path), "'options.repeat_penalty' must lie in 0.001 to 100");
    EXPECT_EQ(option("num_predict", "x", path), "'options.num_predict' must be a whole number");
  }
  EXPECT_EQ(option("mirostat", 1),
            "'options.mirostat' must be 0 (off) or 2: there is its second version alone");
  EXPECT_EQ(option("stop", 3), "'options.stop' must be a string or a list of strings");
}

}  // namespace
}  // namespace caldera
