// Anthropic's API, and questions about tokens.
#include <gtest/gtest.h>

#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"

namespace caldera {
namespace {

using serve::Json;
using testing::kJson;
using testing::parsed;
using testing::TestServer;

constexpr const char* kMessages = "/v1/messages";

/// The events of a stream: their data, each of the type that its event has.
std::vector<Json> message_events(const std::string& body) {
  std::vector<Json> events;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find("\n\n", at);
    const std::string event = body.substr(at, end - at);
    at = end == std::string::npos ? body.size() : end + 2;
    if (event.starts_with(":")) continue;
    const std::size_t line = event.find('\n');
    const Json data = Json::parse(event.substr(line + std::string("\ndata: ").size()), nullptr, false);
    EXPECT_EQ(event.substr(0, line), "event: " + data.value("type", "?")) << event;
    events.push_back(data);
  }
  return events;
}

TEST(Messages, AnAnswerIsAMessage) {
  TestServer server;
  std::string prompt;
  server.engine.reply = [&](const std::string& seen) {
    prompt = seen;
    return std::string("Hello!");
  };
  const auto result = server.client().Post(
      kMessages,
      R"({"model":"tiny","max_tokens":50,"system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}],)"
      R"("messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"thinking",)"
      R"("thinking":"t","signature":""},{"type":"text","text":"Yo"}]},{"role":"user","content":[)"
      R"({"type":"text","text":"a"},{"type":"text","text":"b"}]}],"metadata":{"user_id":"u"},"top_k":5})",
      kJson);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->status, 200) << result->body;
  EXPECT_EQ(prompt, "system:S\nuser:Hi\nassistant:Yo\nuser:a\nb\nassistant:");
  Json body = parsed(result);
  EXPECT_TRUE(body["id"].get<std::string>().starts_with("msg_"));
  body.erase("id");
  EXPECT_EQ(
      body.dump(),
      R"({"type":"message","role":"assistant","model":"tiny","content":[{"type":"text","text":"Hello!"}],)"
      R"("stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":49,)"
      R"("cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":7}})");
  EXPECT_EQ(server.engine.seen()[0].sampling.top_k, 5);
  const Json stopped = parsed(server.client().Post(
      kMessages, R"({"max_tokens":9,"stop_sequences":["lo"],"messages":[{"role":"user","content":"Hi"}]})",
      kJson));
  EXPECT_EQ(stopped["content"][0]["text"], "Hel");
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "lo");
  const Json cut = parsed(server.client().Post(
      kMessages, R"({"max_tokens":2,"messages":[{"role":"user","content":"Hi"}]})", kJson));
  EXPECT_EQ(cut["stop_reason"], "max_tokens");
}

TEST(Messages, StreamsBlocks) {
  TestServer server;
  server.engine.token_time = std::chrono::microseconds(300);
  server.engine.reply = [](const std::string&) {
    return std::string("Look.<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>");
  };
  const std::string request =
      R"("max_tokens":200,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"add",)"
      R"("description":"adds","input_schema":{"type":"object","properties":{"a":{"type":"integer"}}}}]})";
  const Json whole = parsed(server.client().Post(kMessages, "{" + request, kJson));
  ASSERT_EQ(whole["content"].size(), 2U) << whole.dump();
  EXPECT_EQ(whole["content"][1]["type"], "tool_use");
  EXPECT_EQ(whole["content"][1]["input"].dump(), R"({"a":1})");
  EXPECT_EQ(whole["stop_reason"], "tool_use");

  const auto streamed = server.client().Post(kMessages, R"({"stream":true,)" + request, kJson);
  const std::vector<Json> events = message_events(streamed->body);
  ASSERT_GE(events.size(), 8U);
  EXPECT_EQ(events[0]["type"], "message_start");
  EXPECT_GT(events[0]["message"]["usage"]["input_tokens"], 0);
  std::string text, json, types;
  for (const Json& event : events) {
    const std::string type = event["type"];
    if (type == "content_block_start") types += event["content_block"]["type"].get<std::string>() + " ";
    if (type == "content_block_delta" && event["delta"].contains("text"))
      text += event["delta"]["text"].get<std::string>();
    if (type == "content_block_delta" && event["delta"].contains("partial_json"))
      json += event["delta"]["partial_json"].get<std::string>();
  }
  EXPECT_EQ(types, "text tool_use ");
  EXPECT_EQ(text, "Look.");
  EXPECT_EQ(json, R"({"a": 1})") << "as it is written";
  EXPECT_EQ(events[events.size() - 2]["delta"]["stop_reason"], "tool_use");
  EXPECT_GT(events[events.size() - 2]["usage"]["output_tokens"], 0);
  EXPECT_EQ(events.back()["type"], "message_stop");
  // The call and its result go back.
  const auto next = server.client().Post(
      kMessages,
      R"({"max_tokens":9,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[)"
      R"({"type":"tool_use","id":"toolu_1","name":"add","input":{"a":1}}]},{"role":"user","content":[)"
      R"({"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"2"}]}]}]})",
      kJson);
  EXPECT_EQ(next->status, 200) << next->body;
  // One that is demanded is made.
  const Json demanded = parsed(
      server.client().Post(kMessages, R"({"tool_choice":{"type":"tool","name":"add"},)" + request, kJson));
  EXPECT_EQ(demanded["content"][0]["name"], "add") << demanded.dump();
}

TEST(Messages, RefusesInAnthropicsWords) {
  serve::ServerOptions options;
  options.api_key = "sesame";
  TestServer server({}, options);
  const std::string hi = R"("messages":[{"role":"user","content":"Hi"}])";
  const auto ask = [&](const std::string& body, const char* key = "sesame") {
    const auto result = server.client().Post(kMessages, {{"x-api-key", key}}, body, kJson);
    const Json error = parsed(result);
    EXPECT_EQ(error["type"], "error") << error.dump();
    return error["error"]["type"].get<std::string>() + " " + std::to_string(result->status);
  };
  EXPECT_EQ(ask("{" + hi + "}"), "invalid_request_error 400");  // no max_tokens
  EXPECT_EQ(ask(R"({"max_tokens":5,)" + hi + "}", "wrong"), "authentication_error 401");
  EXPECT_EQ(ask(R"({"max_tokens":5,"model":"other",)" + hi + "}"), "not_found_error 404");
  EXPECT_EQ(ask(R"({"max_tokens":5,"colour":1,)" + hi + "}"), "invalid_request_error 400");
  for (const char* messages : {R"([])", R"([{"role":"system","content":"S"}])", R"([{"role":"user"}])",
                               R"([{"role":"user","content":[{"type":"image","source":{}}]}])",
                               R"([{"role":"user","content":"a"},{"role":"assistant","content":" "}])",
                               R"([{"role":"user","content":[{"type":"tool_use","name":"a"}]}])"})
    EXPECT_EQ(ask(R"({"max_tokens":5,"messages":)" + std::string(messages) + "}"),
              "invalid_request_error 400")
        << messages;
  EXPECT_EQ(ask(R"({"max_tokens":5,"tools":[{"type":"web_search_20250305","name":"w"}],)" + hi + "}"),
            "invalid_request_error 400");
  EXPECT_EQ(server.client().Get(kMessages)->status, 405);
}

TEST(TokenQuestions, TextsBecomeTokensAndBack) {
  TestServer server;
  const auto ask = [&](const char* path, const std::string& body) {
    return parsed(server.client().Post(path, body, kJson));
  };
  EXPECT_EQ(ask("/tokenize", R"({"model":"tiny","prompt":"Hi"})").dump(),
            R"({"count":3,"max_model_len":4096,"tokens":[256,72,105]})");
  EXPECT_EQ(ask("/tokenize", R"({"prompt":"Hi","add_special_tokens":false,"return_token_strs":true})").dump(),
            R"({"count":2,"max_model_len":4096,"tokens":[72,105],"token_strs":["H","i"]})");
  EXPECT_EQ(ask("/tokenize", R"({"content":"Hi"})")["tokens"].dump(), "[72,105]");
  EXPECT_EQ(ask("/tokenize", R"({"content":"Hi","add_special":true})")["count"], 3);
  const std::string chat = R"("messages":[{"role":"user","content":"Hi"}])";
  EXPECT_EQ(ask("/tokenize", "{" + chat + "}")["count"], 18);
  EXPECT_EQ(ask("/apply-template", "{" + chat + "}")["prompt"], "user:Hi\nassistant:");
  EXPECT_EQ(ask("/apply-template", "{" + chat + R"(,"add_generation_prompt":false})")["prompt"], "user:Hi\n");
  EXPECT_EQ(ask("/v1/messages/count_tokens", R"({"model":"tiny",)" + chat + "}").dump(),
            R"({"input_tokens":18})");
  EXPECT_EQ(ask("/detokenize", R"({"tokens":[72,105]})")["prompt"], "Hi");
  for (const auto& [path, body] :
       std::vector<std::pair<const char*, const char*>>{{"/tokenize", R"({})"},
                                                        {"/tokenize", R"({"prompt":1})"},
                                                        {"/tokenize", R"({"prompt":"a","colour":1})"},
                                                        {"/detokenize", R"({"tokens":[99999]})"},
                                                        {"/detokenize", R"({"tokens":["a"]})"},
                                                        {"/detokenize", R"({})"},
                                                        {"/apply-template", R"({"messages":[]})"}})
    EXPECT_EQ(server.client().Post(path, body, kJson)->status, 400) << path << body;
}

}  // namespace
}  // namespace caldera
