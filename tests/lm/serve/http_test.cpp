// The server's answers, over its own sockets.
#include <gtest/gtest.h>

#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"

namespace caldera {
namespace {

using serve::Json;
using testing::TestServer;

using testing::events_of;
using testing::kChat;
using testing::kJson;
using testing::parsed;

constexpr const char* kHello = R"({"model":"tiny","messages":[{"role":"user","content":"Hi"}],"seed":1})";

std::string joined(const std::vector<Json>& events) {
  std::string text;
  for (const Json& event : events)
    for (const Json& choice : event["choices"]) text += choice["delta"].value("content", "");
  return text;
}

TEST(Serve, AnswersAChat) {
  TestServer server;
  const auto result = server.client().Post(kChat, kHello, kJson);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 200);
  Json body = parsed(result);
  EXPECT_TRUE(body["id"].get<std::string>().starts_with("chatcmpl-"));
  body.erase("id");
  EXPECT_GT(body["created"].get<std::int64_t>(), 1000000);
  body.erase("created");
  // "user:Hi\nassistant:" has 18 bytes; an answer of 13 and an eos.
  EXPECT_EQ(
      body.dump(),
      R"({"object":"chat.completion","model":"tiny","choices":[{"index":0,"message":{"role":"assistant",)"
      R"("content":"Hello, world!","refusal":null},"logprobs":null,"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":18,"completion_tokens":14,"total_tokens":32,)"
      R"("prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}})");
  const auto seen = server.engine.seen();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].sampling.temperature, 1);
  EXPECT_EQ(seen[0].sampling.seed, 1U);
  EXPECT_EQ(seen[0].max_tokens, 4096 - 18);
  EXPECT_EQ(seen[0].adapter, "");
}

TEST(Serve, StreamsAChat) {
  TestServer server;
  server.engine.token_time = std::chrono::microseconds(500);
  server.engine.reply = [](const std::string&) { return "h\xC3\xA9llo"; };
  const auto result = server.client().Post(
      kChat,
      R"({"messages":[{"role":"user","content":"Hi"}],"stream":true,"stream_options":{"include_usage":true}})",
      kJson);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->get_header_value("Content-Type"), "text/event-stream");
  const std::vector<Json> events = events_of(result->body);
  ASSERT_GE(events.size(), 4U);
  EXPECT_EQ(joined(events), "h\xC3\xA9llo");
  EXPECT_EQ(events[0]["object"], "chat.completion.chunk");
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  const Json& last = events[events.size() - 2];
  EXPECT_EQ(last["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(last["usage"].is_null());
  EXPECT_EQ(events.back()["choices"].size(), 0U);
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 7);
}

TEST(Serve, CompletesPromptsOfAllKinds) {
  TestServer server;
  server.engine.reply = [](const std::string& prompt) { return prompt + "!"; };
  const auto result = server.client().Post(
      "/v1/completions", R"({"prompt":["ab","c"],"n":2,"echo":true,"max_tokens":9,"temperature":0})", kJson);
  const Json body = parsed(result);
  ASSERT_EQ(body["choices"].size(), 4U);
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["choices"][0]["text"], "abab!");
  EXPECT_EQ(body["choices"][3]["text"], "cc!");
  EXPECT_EQ(body["choices"][3]["index"], 3);
  EXPECT_EQ(body["usage"]["prompt_tokens"], 2 + 3 - 0);  // bos is one of each prompt's
  const Json ids =
      parsed(server.client().Post("/v1/completions", R"({"prompt":[104,105],"max_tokens":2})", kJson));
  EXPECT_EQ(ids["choices"][0]["text"], "hi");
  EXPECT_EQ(ids["choices"][0]["finish_reason"], "length");
}

TEST(Serve, EndsAtStopStringsAndHoldsTheirBeginningsBack) {
  TestServer server;
  server.engine.reply = [](const std::string&) { return std::string("one<en two<end> three"); };
  const std::string request = R"("messages":[{"role":"user","content":"Hi"}],"stop":["<end>"])";
  const Json body = parsed(server.client().Post(kChat, "{" + request + "}", kJson));
  EXPECT_EQ(body["choices"][0]["message"]["content"], "one<en two");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(body["usage"]["completion_tokens"], 15);  // the engine does not go on behind it
  const auto streamed = server.client().Post(kChat, "{" + request + R"(,"stream":true})", kJson);
  const std::vector<Json> events = events_of(streamed->body);
  EXPECT_EQ(joined(events), "one<en two");
}

TEST(Serve, TellsLogProbabilities) {
  TestServer server;
  server.engine.reply = [](const std::string&) { return std::string("xy"); };
  const Json chat = parsed(server.client().Post(
      kChat, R"({"messages":[{"role":"user","content":"Hi"}],"logprobs":true,"top_logprobs":2})", kJson));
  const Json& content = chat["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 2U);
  EXPECT_EQ(content[0].dump(),
            R"({"token":"x","logprob":-0.5,"bytes":[120],"top_logprobs":[)"
            R"({"token":"a","logprob":-1.0,"bytes":[97]},{"token":"b","logprob":-2.0,"bytes":[98]}]})");
  const Json text = parsed(server.client().Post("/v1/completions", R"({"prompt":"a","logprobs":1})", kJson));
  EXPECT_EQ(
      text["choices"][0]["logprobs"].dump(),
      R"({"tokens":["x","y"],"token_logprobs":[-0.5,-0.5],"top_logprobs":[{"a":-1.0,"x":-0.5},{"a":-1.0,"y":-0.5}],)"
      R"("text_offset":[0,1]})");
}

TEST(Serve, FindsCallsOfTools) {
  TestServer server;
  server.engine.reply = [](const std::string&) {
    return std::string("Look.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>");
  };
  const std::string request =
      R"("messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"add"}}])";
  const Json body = parsed(server.client().Post(kChat, "{" + request + "}", kJson));
  const Json& choice = body["choices"][0];
  EXPECT_EQ(choice["message"]["content"], "Look.");
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], "add");
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], R"({"a":1})");
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  const auto streamed = server.client().Post(kChat, "{" + request + R"(,"stream":true})", kJson);
  const std::vector<Json> events = events_of(streamed->body);
  EXPECT_EQ(joined(events), "Look.");
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["delta"]["tool_calls"][0]["index"], 0);
  EXPECT_EQ(events.back()["choices"][0]["finish_reason"], "tool_calls");
  // Without tools in the request the text is what it is.
  const Json plain = parsed(server.client().Post(kChat, kHello, kJson));
  EXPECT_EQ(plain["choices"][0]["finish_reason"], "stop");
}

TEST(Serve, HoldsTextsToSchemas) {
  TestServer server;
  const std::string messages = R"({"messages":[{"role":"user","content":"Hi"}],)";
  const Json body = parsed(server.client().Post(
      kChat,
      messages + R"("n":2,"response_format":{"type":"json_schema","json_schema":{"name":"r","schema":)"
                 R"({"type":"object","properties":{"age":{"type":"integer"}},"required":["age"]}}}})",
      kJson));
  for (const Json& choice : body["choices"])
    EXPECT_TRUE(Json::parse(choice["message"]["content"].get<std::string>())["age"].is_number_integer());
  const Json object =
      parsed(server.client().Post(kChat, messages + R"("response_format":{"type":"json_object"}})", kJson));
  EXPECT_TRUE(Json::parse(object["choices"][0]["message"]["content"].get<std::string>()).is_object());
  const auto refused = server.client().Post(
      kChat,
      messages + R"("response_format":{"type":"json_schema","json_schema":{"schema":{"contains":{}}}}})",
      kJson);
  EXPECT_EQ(refused->status, 400);
  EXPECT_NE(refused->body.find("'contains' is not supported"), std::string::npos);
  // A call that is demanded is one, of the function that is named.
  const Json call = parsed(server.client().Post(
      kChat,
      messages +
          R"("tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b",)"
          R"("parameters":{"type":"object","properties":{"x":{"type":"boolean"}},"required":["x"]}}}],)"
          R"("tool_choice":{"type":"function","function":{"name":"b"}}})",
      kJson));
  EXPECT_EQ(call["choices"][0]["finish_reason"], "tool_calls");
  const Json& function = call["choices"][0]["message"]["tool_calls"][0]["function"];
  EXPECT_EQ(function["name"], "b");
  EXPECT_TRUE(Json::parse(function["arguments"].get<std::string>())["x"].is_boolean());
}

TEST(Serve, RequestsThatSayNothingOfSamplingGetTheServers) {
  serve::ServeLimits limits;
  limits.sampling.temperature = 0.25;
  limits.sampling.top_k = 7;
  limits.sampling.repetition_penalty = 1.25;
  TestServer server(limits);
  const std::string request = R"({"prompt":"a","max_tokens":1)";
  for (const char* more : {"", R"(,"temperature":0.5,"top_k":-1,"repetition_penalty":1)"})
    EXPECT_EQ(server.client().Post("/v1/completions", request + more + "}", kJson)->status, 200);
  const auto seen = server.engine.seen();
  EXPECT_EQ(seen[0].sampling.temperature, 0.25);
  EXPECT_EQ(seen[0].sampling.top_k, 7);
  EXPECT_EQ(seen[0].sampling.repetition_penalty, 1.25);
  EXPECT_EQ(seen[1].sampling.temperature, 0.5);
  EXPECT_EQ(seen[1].sampling.top_k, 0);
  EXPECT_EQ(seen[1].sampling.repetition_penalty, 1);
}

TEST(Serve, SwitchesAdaptersByName) {
  TestServer server;
  const Json models = parsed(server.client().Get("/v1/models"));
  ASSERT_EQ(models["data"].size(), 2U);
  EXPECT_EQ(models["data"][1]["id"], "poet");
  EXPECT_EQ(parsed(server.client().Get("/v1/models/poet"))["parent"], "tiny");
  const Json body = parsed(
      server.client().Post(kChat, R"({"model":"poet","messages":[{"role":"user","content":"Hi"}]})", kJson));
  EXPECT_EQ(body["model"], "poet");
  EXPECT_EQ(server.engine.seen()[0].adapter, "poet");
  const auto unknown =
      server.client().Post(kChat, R"({"model":"other","messages":[{"role":"user","content":"Hi"}]})", kJson);
  EXPECT_EQ(unknown->status, 404);
  EXPECT_EQ(parsed(unknown)["error"]["code"], "model_not_found");
  // One that goes while a request comes is as one that was not there.
  server.engine.unloads = true;
  const auto gone =
      server.client().Post(kChat, R"({"model":"poet","messages":[{"role":"user","content":"Hi"}]})", kJson);
  EXPECT_EQ(gone->status, 404);
  EXPECT_EQ(parsed(gone)["error"]["code"], "model_not_found");
}

TEST(Serve, RefusesInOpenAIsWords) {
  TestServer server;
  const std::vector<std::pair<const char*, const char*>> cases{
      {R"({"messages":[{"role":"user","content":"Hi"}],"temperature":-1})",
       R"({"error":{"message":"'temperature' must lie in 0 to 100","type":"invalid_request_error",)"
       R"("param":"temperature","code":null}})"},
      {R"({"messages":[{"role":"user","content":"Hi"}],"colour":1})",
       R"({"error":{"message":"unrecognized request argument: colour","type":"invalid_request_error",)"
       R"("param":"colour","code":"unknown_parameter"}})"},
      {R"({"messages":[{"role":"ghost","content":"Hi"}]})",
       R"({"error":{"message":"'messages[0].role' must be system, developer, user, assistant or tool",)"
       R"("type":"invalid_request_error","param":"messages[0].role","code":null}})"}};
  for (const auto& [request, answer] : cases) {
    const auto result = server.client().Post(kChat, request, kJson);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 400);
    EXPECT_EQ(result->body, answer);
  }
  const std::string nul = std::string(kHello) + std::string("\0x", 2);
  EXPECT_EQ(server.client().Post(kChat, nul, kJson)->status, 400);
  EXPECT_EQ(server.client()
                .Post(kChat, R"({"messages":[{"role":"user","content":"Hi"}],"audio":null})", kJson)
                ->status,
            200);
  EXPECT_EQ(server.client().Get(kChat)->status, 405);
  const auto wrong = server.client().Delete("/v1/models");
  EXPECT_EQ(wrong->status, 405);
  EXPECT_EQ(wrong->get_header_value("Allow"), "GET, HEAD");
  EXPECT_EQ(server.client().Get("/v1/embeddings")->get_header_value("Allow"), "POST");
  EXPECT_EQ(server.client().Get("/v1/models/org%2Fname")->status, 404);
  EXPECT_EQ(parsed(server.client().Get("/v1/models/org/name"))["error"]["code"], "model_not_found");
  EXPECT_EQ(
      server.client()
          .Post(kChat,
                R"({"messages":[{"role":"user","content":"Hi"}],"chat_template_kwargs":{"messages":[]}})",
                kJson)
          ->status,
      400);
  EXPECT_EQ(
      server.client().Post("/v1/completions", R"({"prompt":"a","logit_bias":{"99999999":1}})", kJson)->status,
      400);
  EXPECT_NE(parsed(server.client().Get("/v1/models/a%00b"))["error"]["message"].dump().find("does not exist"),
            std::string::npos);
  EXPECT_EQ(server.client().Get("/nothing")->status, 404);
  EXPECT_EQ(parsed(server.client().Get("/nothing"))["error"]["type"], "invalid_request_error");
  EXPECT_EQ(server.client().Post("/v1/embeddings", R"({"input":"a"})", kJson)->status, 400);
}

TEST(Serve, KeepsToItsLimits) {
  serve::ServeLimits limits;
  limits.max_body = 1000;
  limits.max_messages = 2;
  TestServer server(limits);
  const std::string large = R"({"messages":[{"role":"user","content":")" + std::string(2000, 'a') + R"("}]})";
  EXPECT_EQ(server.client().Post(kChat, large, kJson)->status, 413);
  const auto chunked = server.client().Post(
      kChat,
      [&](std::size_t offset, httplib::DataSink& sink) {
        if (offset < large.size())
          sink.write(large.data() + offset, std::min<std::size_t>(100, large.size() - offset));
        else
          sink.done();
        return true;
      },
      kJson);
  EXPECT_TRUE(!chunked || chunked->status == 413);
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  EXPECT_EQ(server.client().Post(kChat, R"({"messages":)" + deep + "}", kJson)->status, 400);
  const std::string message = R"({"role":"user","content":"a"})";
  EXPECT_EQ(server.client()
                .Post(kChat, R"({"messages":[)" + message + "," + message + "," + message + "]}", kJson)
                ->status,
            400);
  const auto empty = server.client().Post("/v1/completions", R"({"prompt":[]})", kJson);
  EXPECT_EQ(empty->status, 400);
}

TEST(Serve, AsksForItsKey) {
  serve::ServerOptions options;
  options.api_key = "sesame";
  TestServer server({}, options);
  EXPECT_EQ(server.client().Get("/health")->status, 200);
  const auto refused = server.client().Post(kChat, kHello, kJson);
  EXPECT_EQ(refused->status, 401);
  EXPECT_EQ(parsed(refused)["error"]["code"], "invalid_api_key");
  EXPECT_EQ(server.client().Get("/v1/models", {{"Authorization", "Bearer sesam"}})->status, 401);
  EXPECT_EQ(server.client().Get("/v1/models", {{"Authorization", "Bearer sesame"}})->status, 200);
  EXPECT_EQ(server.client().Get("/metrics")->status, 401);
}

TEST(Serve, RefusesPagesOfOtherSites) {
  TestServer server;
  const std::string own = "http://127.0.0.1:" + std::to_string(server.port);
  EXPECT_EQ(server.client().Get("/v1/models", {{"Origin", own}})->status, 200);
  EXPECT_EQ(server.client().Get("/v1/models", {{"Origin", "http://evil.example"}})->status, 403);
  EXPECT_EQ(server.client()
                .Get("/v1/models", {{"Host", "evil.example:80"}, {"Origin", "http://evil.example:80"}})
                ->status,
            403);
}

TEST(Serve, EveryPathRefusesPagesOfOtherSites) {
  TestServer server;
  for (const char* path :
       {"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/messages/count_tokens",
        "/v1/responses", "/v1/embeddings", "/v1/rerank", "/rerank", "/api/chat", "/api/generate", "/tokenize",
        "/detokenize", "/apply-template", "/v1/load_lora_adapter", "/v1/unload_lora_adapter"}) {
    EXPECT_EQ(server.client().Post(path, {{"Origin", "http://evil.example"}}, "{}", kJson)->status, 403)
        << path;
    // As browsers send forms of other pages, without asking first.
    EXPECT_EQ(server.client().Post(path, {{"Origin", "null"}}, "{}", "text/plain")->status, 403) << path;
    EXPECT_EQ(server.client().Post(path, {{"Host", "127.0.0.1.evil.example"}}, "{}", kJson)->status, 403)
        << path;
    const auto asked = server.client().Options(path, {{"Origin", "http://evil.example"}});
    EXPECT_FALSE(asked->has_header("Access-Control-Allow-Origin")) << path;
  }
  for (const char* path : {"/", "/v1/models", "/v1/models/tiny", "/metrics", "/health", "/api/tags"})
    EXPECT_EQ(server.client().Get(path, {{"Host", "rebound.example"}})->status, 403) << path;
}

TEST(Serve, PushesBack) {
  serve::ServeLimits limits;
  limits.max_clients = 1;
  TestServer server(limits);
  server.engine.token_time = std::chrono::milliseconds(5);
  server.engine.reply = [](const std::string&) { return std::string(100, 'a'); };
  std::thread first([&] { EXPECT_EQ(server.client().Post(kChat, kHello, kJson)->status, 200); });
  ASSERT_TRUE(TestServer::eventually([&] { return server.engine.status().running == 1; }));
  const auto refused = server.client().Post(kChat, kHello, kJson);
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(refused->get_header_value("Retry-After"), "2");
  EXPECT_EQ(server.client().Get("/health")->status, 200);
  first.join();
  server.engine.max_queue = 0;
  EXPECT_EQ(server.client().Post(kChat, kHello, kJson)->status, 429);
}

TEST(Serve, CancelsWhenAClientLeaves) {
  TestServer server;
  server.engine.token_time = std::chrono::milliseconds(2);
  server.engine.reply = [](const std::string&) { return std::string(4000, 'a'); };
  for (const bool stream : {true, false}) {
    const std::int64_t before = server.engine.finished;
    httplib::Client client = server.client();
    std::atomic<bool> begun{false};
    std::thread leaver([&] {
      const Json body{{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"stream", stream}};
      httplib::Request request;
      request.method = "POST";
      request.path = kChat;
      request.body = body.dump();
      request.headers = {{"Content-Type", kJson}};
      request.content_receiver = [&](const char*, std::size_t, std::uint64_t, std::uint64_t) {
        begun = true;
        return true;
      };
      client.send(request);
    });
    ASSERT_TRUE(TestServer::eventually([&] { return server.engine.status().running == 1; }));
    ASSERT_TRUE(TestServer::eventually([&] { return begun || !stream; }));
    client.stop();
    leaver.join();
    EXPECT_TRUE(TestServer::eventually([&] { return server.engine.finished == before + 1; }));
  }
  EXPECT_EQ(server.engine.cancelled, 2);
  EXPECT_TRUE(TestServer::eventually([&] {
    return server.client().Get("/metrics")->body.find("caldera_disconnects_total 2") != std::string::npos;
  }));
}

TEST(Serve, CancelsWhatTakesTooLong) {
  serve::ServeLimits limits;
  limits.request_seconds = 0;
  TestServer server(limits);
  server.engine.token_time = std::chrono::milliseconds(5);
  server.engine.reply = [](const std::string&) { return std::string(4000, 'a'); };
  EXPECT_EQ(server.client().Post(kChat, kHello, kJson)->status, 504);
  EXPECT_TRUE(TestServer::eventually([&] { return server.engine.status().running == 0; }));
}

TEST(Serve, StopsGracefully) {
  TestServer server;
  server.engine.token_time = std::chrono::milliseconds(2);
  server.engine.reply = [](const std::string&) { return std::string(100, 'a'); };
  std::string content;
  std::thread client([&] {
    const auto result =
        server.client().Post(kChat, R"({"messages":[{"role":"user","content":"Hi"}],"stream":true})", kJson);
    if (result) content = joined(events_of(result->body));
  });
  ASSERT_TRUE(TestServer::eventually([&] { return server.engine.status().running == 1; }));
  server.server->stop();
  client.join();
  EXPECT_EQ(content, std::string(100, 'a'));
  EXPECT_FALSE(server.client().Get("/health"));
}

TEST(Serve, SlowClientsDoNotHoldTheOthersUp) {
  TestServer server;
  server.engine.reply = [](const std::string&) { return std::string(3000, 'a'); };
  // Reads nothing of what it asked for.
  httplib::Client slow = server.client();
  std::atomic<bool> go{false};
  std::thread sleeper([&] {
    httplib::Request request;
    request.method = "POST";
    request.path = kChat;
    request.body = R"({"messages":[{"role":"user","content":"Hi"}],"stream":true,"n":16})";
    request.headers = {{"Content-Type", kJson}};
    request.content_receiver = [&](const char*, std::size_t, std::uint64_t, std::uint64_t) {
      while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return true;
    };
    slow.send(request);
  });
  ASSERT_TRUE(TestServer::eventually([&] { return server.engine.finished >= 16; }));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(server.client().Post(kChat, kHello, kJson)->status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  go = true;
  sleeper.join();
}

}  // namespace
}  // namespace caldera
