// OpenAI's newer API, /v1/responses, and Ollama's.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"

namespace caldera {
namespace {

using serve::Json;
using testing::kJson;
using testing::parsed;
using testing::TestServer;

constexpr const char* kResponses = "/v1/responses";

/// The events of a stream: numbered, each of the type that its event has.
std::vector<Json> response_events(const std::string& body) {
  std::vector<Json> events;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find("\n\n", at);
    const std::string event = body.substr(at, end - at);
    at = end == std::string::npos ? body.size() : end + 2;
    if (event.starts_with(":")) continue;
    const Json data =
        Json::parse(event.substr(event.find('\n') + std::string("\ndata: ").size()), nullptr, false);
    EXPECT_EQ(event.substr(0, event.find('\n')), "event: " + data.value("type", "?")) << event;
    EXPECT_EQ(data.value("sequence_number", -1), static_cast<int>(events.size()));
    events.push_back(data);
  }
  return events;
}

TEST(Responses, AnAnswerHasItems) {
  TestServer server;
  std::string prompt;
  server.engine.reply = [&](const std::string& seen) {
    prompt = seen;
    return std::string("Hello!");
  };
  const auto result = server.client().Post(
      kResponses,
      R"({"model":"tiny","instructions":"S","input":[{"role":"user","content":"Hi"},{"type":"reasoning","id":"r",)"
      R"("summary":[],"content":[{"type":"reasoning_text","text":"t"}]},{"type":"message","role":"assistant","content":[)"
      R"({"type":"output_text","text":"Yo","annotations":[]}]},{"role":"user","content":[{"type":"input_text",)"
      R"("text":"a"},{"type":"input_text","text":"b"}]}],"max_output_tokens":50,"store":false,"metadata":{"k":"v"}})",
      kJson);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->status, 200) << result->body;
  EXPECT_EQ(prompt, "system:S\nuser:Hi\nassistant:Yo\nuser:a\nb\nassistant:");
  const Json body = parsed(result);
  EXPECT_EQ(body["object"], "response");
  EXPECT_EQ(body["status"], "completed");
  EXPECT_EQ(body["instructions"], "S");
  EXPECT_EQ(body["metadata"]["k"], "v");
  EXPECT_EQ(body["max_output_tokens"], 50);
  ASSERT_EQ(body["output"].size(), 1U) << body.dump();
  EXPECT_EQ(body["output"][0]["type"], "message");
  EXPECT_EQ(body["output"][0]["role"], "assistant");
  EXPECT_EQ(body["output"][0]["status"], "completed");
  EXPECT_EQ(body["output"][0]["content"][0]["text"], "Hello!");
  EXPECT_EQ(body["usage"]["output_tokens"], 7);
  EXPECT_EQ(body["usage"]["total_tokens"], body["usage"]["input_tokens"].get<int>() + 7);

  const Json cut = parsed(server.client().Post(kResponses, R"({"input":"Hi","max_output_tokens":2})", kJson));
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(cut["output"][0]["content"][0]["text"], "He");
  EXPECT_EQ(prompt, "user:Hi\nassistant:");

  const Json held = parsed(server.client().Post(
      kResponses,
      R"({"input":"Hi","text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object","properties":)"
      R"({"ok":{"type":"boolean"}},"required":["ok"]}}}})",
      kJson));
  EXPECT_TRUE(Json::parse(held["output"][0]["content"][0]["text"].get<std::string>())["ok"].is_boolean());
  const Json told = parsed(server.client().Post(kResponses, R"({"input":"Hi","top_logprobs":2})", kJson));
  EXPECT_EQ(told["output"][0]["content"][0]["logprobs"].size(), 6U);
}

TEST(Responses, StreamsItemsAndCalls) {
  TestServer server;
  server.engine.token_time = std::chrono::microseconds(300);
  server.engine.reply = [](const std::string&) {
    return std::string(
        "<think>why</think>Look.<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>");
  };
  const std::string request =
      R"("input":"Hi","tools":[{"type":"function","name":"add","description":"adds","strict":true,"parameters":)"
      R"({"type":"object","properties":{"a":{"type":"integer"}}}}]})";
  const Json whole = parsed(server.client().Post(kResponses, "{" + request, kJson));
  ASSERT_EQ(whole["output"].size(), 3U) << whole.dump();
  EXPECT_EQ(whole["output"][0]["content"][0]["text"], "why");
  EXPECT_EQ(whole["output"][2]["type"], "function_call");
  EXPECT_EQ(whole["output"][2]["arguments"], R"({"a":1})");

  const auto streamed = server.client().Post(kResponses, R"({"stream":true,)" + request, kJson);
  const std::vector<Json> events = response_events(streamed->body);
  ASSERT_GE(events.size(), 12U) << streamed->body;
  EXPECT_EQ(events[0]["type"], "response.created");
  EXPECT_EQ(events[0]["response"]["status"], "in_progress");
  EXPECT_EQ(events[1]["type"], "response.in_progress");
  // What the pieces make is what the items say at their end, and what the response says at its own.
  std::map<int, std::string> texts;
  std::map<int, Json> done;
  std::set<std::string> open;
  for (const Json& event : events) {
    const std::string type = event["type"];
    if (type.ends_with(".delta")) texts[event["output_index"]] += event["delta"].get<std::string>();
    if (type == "response.output_item.added") open.insert(event["item"]["id"]);
    if (event.contains("item_id")) {
      EXPECT_EQ(open.count(event["item_id"]), 1U) << event.dump();
    }
    if (type == "response.output_item.done") {
      done[event["output_index"]] = event["item"];
      EXPECT_EQ(open.erase(event["item"]["id"]), 1U);
    }
  }
  EXPECT_EQ(texts[0], "why");
  EXPECT_EQ(texts[1], "Look.");
  EXPECT_EQ(texts[2], R"({"a": 1})") << "as it is written";
  const Json& last = events.back();
  ASSERT_EQ(last["type"], "response.completed");
  ASSERT_EQ(last["response"]["output"].size(), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(last["response"]["output"][static_cast<std::size_t>(i)], done[i]);
  EXPECT_GT(last["response"]["usage"]["output_tokens"], 0);
  // The call and its result go back.
  Json next{{"input", Json::array({{{"role", "user"}, {"content", "Hi"}}})}};
  for (const Json& item : last["response"]["output"]) next["input"].push_back(item);
  next["input"].push_back(
      {{"type", "function_call_output"}, {"call_id", done[2]["call_id"]}, {"output", "2"}});
  EXPECT_EQ(server.client().Post(kResponses, next.dump(), kJson)->status, 200);
  // One that is demanded is made.
  const Json demanded = parsed(server.client().Post(
      kResponses, R"({"tool_choice":{"type":"function","name":"add"},)" + request, kJson));
  EXPECT_EQ(demanded["output"][0]["name"], "add") << demanded.dump();
}

TEST(Responses, RefusesByName) {
  TestServer server;
  const std::vector<std::pair<const char*, const char*>> cases{
      {R"({})", "input"},
      {R"({"input":5})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":["a"]})", "input[0]"},
      {R"({"input":[{"role":"user"}]})", "input[0].content"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})", "input[0].content[].type"},
      {R"({"input":[{"type":"item_reference","id":"x"}]})", "input[0].type"},
      {R"({"input":[{"type":"function_call"}]})", "input[0].name"},
      {R"({"input":[{"type":"function_call_output","output":"2"}]})", "input[0].call_id"},
      {R"({"input":[{"type":"reasoning","summary":"x"}]})", "input[0].summary"},
      {R"({"input":"a","colour":1})", "colour"},
      {R"({"input":"a","previous_response_id":"resp_1"})", "previous_response_id"},
      {R"({"input":"a","conversation":"c"})", "conversation"},
      {R"({"input":"a","background":true})", "background"},
      {R"({"input":"a","truncation":"always"})", "truncation"},
      {R"({"input":"a","max_output_tokens":0})", "max_output_tokens"},
      {R"({"input":"a","tools":[{"type":"web_search"}]})", "tools[].type"},
      {R"({"input":"a","tools":5})", "tools"},
      {R"({"input":"a","tool_choice":{"type":"mcp"}})", "tool_choice.type"},
      {R"({"input":"a","text":{"format":{"type":"json_schema"}}})", "text.format.schema"},
      {R"({"input":"a","text":{"colour":1}})", "text.colour"},
      {R"({"input":"a","reasoning":[]})", "reasoning"},
      {R"({"input":"a","instructions":[]})", "instructions"}};
  for (const auto& [body, param] : cases) {
    const auto result = server.client().Post(kResponses, body, kJson);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 400) << body;
    EXPECT_EQ(Json::parse(result->body)["error"]["param"], param) << body << result->body;
  }
}

/// The lines of a stream.
std::vector<Json> lines_of(const std::string& body) {
  std::vector<Json> lines;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = std::min(body.find('\n', at), body.size());
    lines.push_back(Json::parse(body.substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

TEST(Ollama, ChatsInLines) {
  TestServer server;
  server.engine.reply = [](const std::string&) {
    return std::string(
        "<think>why</think>Look.<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>");
  };
  const std::string request =
      R"("model":"tiny:latest","messages":[{"role":"user","content":"Hi"}],"options":{"num_predict":300,"seed":1,)"
      R"("repeat_penalty":1.25,"num_ctx":2048},"tools":[{"type":"function","function":{"name":"add","parameters":)"
      R"({"type":"object","properties":{"a":{"type":"integer"}}}}}]})";
  const auto streamed = server.client().Post("/api/chat", "{" + request, kJson);
  ASSERT_EQ(streamed->status, 200) << streamed->body;
  EXPECT_EQ(streamed->get_header_value("Content-Type"), "application/x-ndjson");
  const std::vector<Json> lines = lines_of(streamed->body);
  std::string content, thinking;
  Json calls;
  for (const Json& line : lines) {
    EXPECT_EQ(line["model"], "tiny");
    EXPECT_EQ(line["done"], &line == &lines.back());
    content += line["message"]["content"].get<std::string>();
    if (line["message"].contains("thinking")) thinking += line["message"]["thinking"].get<std::string>();
    if (line["message"].contains("tool_calls")) calls = line["message"]["tool_calls"];
  }
  EXPECT_EQ(content, "Look.");
  EXPECT_EQ(thinking, "why");
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0]["function"]["name"], "add");
  EXPECT_EQ(calls[0]["function"]["arguments"]["a"], 1);
  EXPECT_EQ(lines.back()["done_reason"], "stop");
  EXPECT_GT(lines.back()["eval_count"], 5);
  EXPECT_GT(lines.back()["prompt_eval_count"], 5);
  EXPECT_GE(lines.back()["total_duration"], lines.back()["eval_duration"]);
  EXPECT_EQ(server.engine.seen()[0].sampling.repetition_penalty, 1.25);
  EXPECT_EQ(server.engine.seen()[0].max_tokens, 300);

  const Json whole = parsed(server.client().Post("/api/chat", R"({"stream":false,)" + request, kJson));
  EXPECT_EQ(whole["message"]["content"], "Look.");
  EXPECT_EQ(whole["message"]["tool_calls"][0]["function"]["name"], "add");
  EXPECT_TRUE(whole["done"]);
  // The call and its result go back.
  EXPECT_EQ(
      server.client()
          .Post(
              "/api/chat",
              R"({"stream":false,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"",)"
              R"("tool_calls":[{"function":{"name":"add","arguments":{"a":1}}}]},{"role":"tool","tool_name":"add",)"
              R"("content":"2"}]})",
              kJson)
          ->status,
      200);
  const Json held = parsed(server.client().Post(
      "/api/chat",
      R"({"stream":false,"think":false,"messages":[{"role":"user","content":"Hi"}],"format":{"type":"object",)"
      R"("properties":{"ok":{"type":"boolean"}},"required":["ok"]}})",
      kJson));
  EXPECT_TRUE(Json::parse(held["message"]["content"].get<std::string>())["ok"].is_boolean());
}

TEST(Ollama, GeneratesAndLists) {
  TestServer server;
  std::string prompt;
  server.engine.reply = [&](const std::string& seen) {
    prompt = seen;
    return std::string("Hello!");
  };
  const std::vector<Json> lines =
      lines_of(server.client()
                   .Post("/api/generate", R"({"prompt":"Hi","system":"S","options":{"stop":["!"]}})", kJson)
                   ->body);
  std::string text;
  for (const Json& line : lines) text += line["response"].get<std::string>();
  EXPECT_EQ(text, "Hello");
  EXPECT_EQ(prompt, "system:S\nuser:Hi\nassistant:");
  const Json raw = parsed(server.client().Post(
      "/api/generate", R"({"prompt":"Hi","raw":true,"stream":false,"options":{"num_predict":2}})", kJson));
  EXPECT_EQ(prompt, "Hi");
  EXPECT_EQ(raw["response"], "He");
  EXPECT_EQ(raw["done_reason"], "length");
  const Json loaded = parsed(server.client().Post("/api/generate", R"({"model":"tiny"})", kJson));
  EXPECT_EQ(loaded["done_reason"], "load");
  EXPECT_EQ(server.client().Post("/api/chat", R"({"model":"other"})", kJson)->status, 404);
  const Json tags = parsed(server.client().Get("/api/tags"));
  ASSERT_EQ(tags["models"].size(), 2U);
  EXPECT_EQ(tags["models"][0]["name"], "tiny");
  EXPECT_EQ(tags["models"][1]["model"], "poet");
  EXPECT_EQ(server.client().Get("/api/chat")->status, 405);
}

TEST(Ollama, RefusesInItsWords) {
  TestServer server;
  const auto refused = [&](const char* path, const std::string& body, const char* word) {
    const auto result = server.client().Post(path, body, kJson);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 400) << body;
    const Json error = Json::parse(result->body);
    ASSERT_TRUE(error["error"].is_string()) << result->body;
    EXPECT_NE(error["error"].get<std::string>().find(word), std::string::npos) << result->body;
  };
  const std::string hi = R"("messages":[{"role":"user","content":"Hi"}])";
  refused("/api/chat", "{" + hi + R"(,"colour":1})", "colour");
  refused("/api/chat", "{" + hi + R"(,"options":{"colour":1}})", "options.colour");
  refused("/api/chat", "{" + hi + R"(,"options":{"mirostat":1}})", "mirostat");
  refused("/api/chat", "{" + hi + R"(,"options":{"temperature":-1}})", "temperature");
  refused("/api/chat", "{" + hi + R"(,"options":[]})", "options");
  refused("/api/chat", "{" + hi + R"(,"format":"xml"})", "format");
  refused("/api/chat", "{" + hi + R"(,"format":{"type":"thing"}})", "type");
  refused("/api/chat", "{" + hi + R"(,"think":5})", "think");
  refused("/api/chat", R"({"messages":[5]})", "messages[0]");
  refused("/api/chat", R"({"messages":[{"role":"king","content":"a"}]})", "role");
  refused("/api/chat", R"({"messages":[{"role":"user","content":"a","images":["x"]}]})", "images");
  refused("/api/generate", R"({"prompt":"a","raw":true,"system":"S"})", "system");
  refused("/api/generate", R"({"prompt":"a","suffix":"b"})", "suffix");
  refused("/api/generate", R"({"prompt":5})", "prompt");
  refused("/api/generate", R"({"prompt":"a","context":[1]})", "context");
}

}  // namespace
}  // namespace caldera
