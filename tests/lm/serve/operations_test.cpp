// What people who run the server ask of it: keys with limits, ids and logs of requests, adapters that change,
// and whether it is well.
#include <gtest/gtest.h>

#include <fstream>

#include "lm/serve/http/key_ring.h"
#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"
#include "tests/support/temp_folder.h"

namespace caldera {
namespace {

using serve::Json;
using serve::KeyRing;
using testing::kJson;
using testing::parsed;
using testing::TempFolder;
using testing::TestServer;

constexpr const char* kAsk = R"({"prompt":"a","max_tokens":3})";

int status_of_key(const KeyRing& ring, const std::string& key) {
  try {
    ring.check(key);
  } catch (const serve::ApiError& error) {
    return error.status();
  }
  return 200;
}

TEST(KeyRing, KnowsItsKeysAndTheirLimits) {
  const TempFolder folder;
  const auto file = folder.path() / "keys.json";
  std::ofstream(file)
      << R"({"keys":[{"name":"ann","key":"alpha","requests_per_minute":2},{"name":"bob","sha256":")"
      << Sha256().add("beta").hex() << R"(","tokens_per_minute":100},{"key":"gamma","clients":1}]})";
  KeyRing ring("sesame");
  ring.add_file(file);
  for (const char* key : {"sesame", "alpha", "beta", "gamma"})
    EXPECT_EQ(status_of_key(ring, key), 200) << key;
  for (const char* key : {"", "Alpha", "alpha ", "delta"}) EXPECT_EQ(status_of_key(ring, key), 401) << key;
  EXPECT_EQ(status_of_key(KeyRing(), "anything"), 200) << "no key is asked for";
  EXPECT_EQ(KeyRing().begin("anything"), nullptr);
  const auto refused = [&](const char* key) {
    try {
      ring.begin(key);
    } catch (const serve::ApiError& error) {
      EXPECT_EQ(error.status(), 429);
      return error.retry_after();
    }
    return 0;
  };
  EXPECT_EQ(ring.begin("alpha")->name(), "ann");
  ring.begin("alpha");
  EXPECT_NEAR(refused("alpha"), 30, 1) << "a request is back after half a minute";
  {
    const auto use = ring.begin("beta");
    use->count_tokens(250);
  }
  EXPECT_NEAR(refused("beta"), 91, 1) << "151 tokens at 100 a minute";
  {
    const auto use = ring.begin("gamma");
    EXPECT_GT(refused("gamma"), 0);
  }
  EXPECT_EQ(refused("gamma"), 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(refused("sesame"), 0);
}

TEST(KeyRing, GoesOnWithOtherKeys) {
  KeyRing ring;
  ring.add("stays", {.name = "a", .requests_per_minute = 2, .clients = 1});
  ring.add("goes", {.name = "b", .clients = 1});
  const auto begins = [&](const char* key) {
    try {
      ring.begin(key);
      return true;
    } catch (const serve::ApiError&) {
      return false;
    }
  };
  EXPECT_TRUE(begins("stays"));
  auto going = ring.begin("goes");
  auto staying = ring.begin("stays");
  KeyRing next;
  next.add("stays", {.name = "c", .requests_per_minute = 3});
  next.add("comes", {.name = "d"});
  ring.replace(std::move(next));
  EXPECT_EQ(status_of_key(ring, "goes"), 401);
  EXPECT_EQ(status_of_key(ring, "comes"), 200);
  EXPECT_EQ(going->name(), "b");
  going->count_tokens(5);
  going.reset();
  // Two of three requests are used, and one under way counts no more.
  EXPECT_TRUE(begins("stays"));
  EXPECT_FALSE(begins("stays"));
  EXPECT_EQ(staying->name(), "a");
}

TEST(KeyRing, RefusesFilesThatAreNone) {
  const TempFolder folder;
  const auto file = folder.path() / "keys.json";
  for (const char* text :
       {"", "[]", "{}", R"({"keys":[]})", R"({"keys":[5]})", R"({"keys":[{}]})", R"({"keys":[{"key":""}]})",
        R"({"keys":[{"key":"a","sha256":"b"}]})", R"({"keys":[{"sha256":"zz"}]})",
        R"({"keys":[{"sha256":""}]})", R"({"keys":[{"key":"a"},{"key":"a"}]})",
        R"({"keys":[{"key":"a","requests_per_minute":-1}]})", R"({"keys":[{"key":"a","clients":"many"}]})",
        R"({"keys":[{"key":"a","colour":1}]})", R"({"keys":[{"key":"a"}],"more":1})", "\xFF"}) {
    std::ofstream(file) << text;
    KeyRing ring;
    EXPECT_THROW(ring.add_file(file), FileError) << text;
  }
  KeyRing ring;
  EXPECT_THROW(ring.add_file(folder.path() / "absent"), FileError);
}

TEST(Operations, KeysOfAFileAreHeldToTheirLimits) {
  const TempFolder folder;
  const auto file = folder.path() / "keys.json";
  std::ofstream(file) << R"({"keys":[{"name":"ann","key":"alpha","requests_per_minute":2}]})";
  serve::ServerOptions options;
  options.api_keys = file;
  TestServer server({}, options);
  const auto ask = [&](const char* key) {
    return server.client().Post("/v1/completions", {{"Authorization", std::string("Bearer ") + key}}, kAsk,
                                kJson);
  };
  EXPECT_EQ(ask("beta")->status, 401);
  EXPECT_EQ(ask("alpha")->status, 200);
  EXPECT_EQ(server.client().Get("/v1/models", {{"x-api-key", "alpha"}})->status, 200) << "not counted";
  EXPECT_EQ(ask("alpha")->status, 200);
  const auto refused = ask("alpha");
  EXPECT_EQ(refused->status, 429);
  EXPECT_GE(std::stoi(refused->get_header_value("Retry-After")), 25);
  options.api_keys = folder.path() / "absent";
  EXPECT_THROW(TestServer({}, options), FileError);
}

TEST(Operations, RequestsHaveIdsAndLinesOfJson) {
  std::mutex mutex;
  std::vector<std::string> lines;
  serve::ServerOptions options;
  options.json_log = true;
  options.log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  };
  {
    TestServer server({}, options);
    const auto own = server.client().Post("/v1/completions", {{"X-Request-Id", "abc-1.2_3:4"}}, kAsk, kJson);
    EXPECT_EQ(own->get_header_value("X-Request-Id"), "abc-1.2_3:4");
    const std::string wrong(200, 'x');
    for (const std::string& given : {std::string("a b"), std::string("<x>"), wrong}) {
      const auto made = server.client().Post("/v1/completions", {{"X-Request-Id", given}}, kAsk, kJson);
      EXPECT_TRUE(made->get_header_value("X-Request-Id").starts_with("req_")) << given;
    }
    const auto message = server.client().Post(
        "/v1/messages", R"({"max_tokens":3,"messages":[{"role":"user","content":"a"}]})", kJson);
    EXPECT_TRUE(message->get_header_value("request-id").starts_with("req_"));
    EXPECT_NE(server.client().Get("/health")->get_header_value("X-Request-Id"), "");
    EXPECT_EQ(server.client().Post("/v1/completions", "{", kJson)->status, 400);
    EXPECT_TRUE(TestServer::eventually([&] {
      const std::lock_guard lock(mutex);
      return lines.size() >= 7;
    }));
  }
  const Json first = Json::parse(lines[0]);
  EXPECT_EQ(first["id"], "abc-1.2_3:4");
  EXPECT_EQ(first["method"], "POST");
  EXPECT_EQ(first["path"], "/v1/completions");
  EXPECT_EQ(first["status"], 200);
  EXPECT_EQ(first["model"], "tiny");
  EXPECT_EQ(first["prompt_tokens"], 2);
  EXPECT_EQ(first["generated_tokens"], 3);
  EXPECT_EQ(first["end"], "length");
  EXPECT_GE(first["seconds"], first["first_token_seconds"]);
  for (const std::string& line : lines) EXPECT_TRUE(Json::accept(line)) << line;
  EXPECT_EQ(Json::parse(lines.back())["status"], 400);
}

TEST(Operations, AdaptersComeAndGoOnDemand) {
  TestServer closed;
  EXPECT_EQ(
      closed.client().Post("/v1/load_lora_adapter", R"({"lora_name":"a","lora_path":"/b"})", kJson)->status,
      403);
  serve::ServerOptions options;
  options.adapter_updates = true;
  options.api_key = "sesame";
  TestServer server({}, options);
  const auto post = [&](const char* path, const std::string& body, const char* key = "sesame") {
    return server.client().Post(path, {{"x-api-key", key}}, body, kJson);
  };
  const auto models = [&] {
    const Json answer = parsed(server.client().Get("/v1/models", {{"x-api-key", "sesame"}}));
    std::string names;
    for (const Json& model : answer["data"]) names += model["id"].get<std::string>() + " ";
    return names;
  };
  EXPECT_EQ(post("/v1/load_lora_adapter", R"({"lora_name":"new","lora_path":"/b"})", "wrong")->status, 401);
  const auto loaded = post("/v1/load_lora_adapter", R"({"lora_name":"new","lora_path":"/b"})");
  EXPECT_EQ(loaded->status, 200) << loaded->body;
  EXPECT_EQ(loaded->body, "Success: LoRA adapter 'new' added successfully.");
  EXPECT_EQ(server.engine.adapters["new"], "/b");
  EXPECT_EQ(models(), "tiny poet new ");
  EXPECT_EQ(post("/v1/completions", R"({"model":"new","prompt":"a","max_tokens":1})")->status, 200);
  EXPECT_EQ(server.engine.seen().back().adapter, "new");
  EXPECT_EQ(post("/v1/load_lora_adapter", R"({"lora_name":"new","lora_path":"/c"})")->status, 400);
  EXPECT_EQ(
      post("/v1/load_lora_adapter", R"({"lora_name":"new","lora_path":"/c","load_inplace":true})")->status,
      200);
  EXPECT_EQ(server.engine.adapters["new"], "/c");
  EXPECT_EQ(post("/v1/unload_lora_adapter", R"({"lora_name":"new"})")->body,
            "Success: LoRA adapter 'new' removed successfully.");
  EXPECT_EQ(post("/v1/completions", R"({"model":"new","prompt":"a","max_tokens":1})")->status, 404);
  EXPECT_EQ(post("/v1/unload_lora_adapter", R"({"lora_name":"new"})")->status, 404);
  for (const char* wrong :
       {"{}", R"({"lora_name":"a"})", R"({"lora_path":"/b"})", R"({"lora_name":"","lora_path":"/b"})",
        R"({"lora_name":"tiny","lora_path":"/b"})", R"({"lora_name":"a","lora_path":"/no/adapter"})",
        R"({"lora_name":5,"lora_path":"/b"})", R"({"lora_name":"a","lora_path":"/b","colour":1})", "5", "{"})
    EXPECT_EQ(post("/v1/load_lora_adapter", wrong)->status, 400) << wrong;
  EXPECT_EQ(models(), "tiny poet ");
  EXPECT_EQ(server.client().Get("/v1/load_lora_adapter", {{"x-api-key", "sesame"}})->status, 405);
}

TEST(Operations, HealthSaysWhetherAnswersAreMade) {
  TestServer server;
  EXPECT_EQ(server.client().Get("/health")->status, 200);
  server.engine.broken = true;
  const auto broken = server.client().Get("/health");
  EXPECT_EQ(broken->status, 503);
  EXPECT_NE(broken->body.find("smoke"), std::string::npos) << broken->body;
}

}  // namespace
}  // namespace caldera
