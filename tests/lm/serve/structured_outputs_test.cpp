// Forms that answers are held to, other than schemas, and options of sampling beyond OpenAI's.
#include <gtest/gtest.h>

#include <regex>

#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"

namespace caldera {
namespace {

using serve::Json;
using testing::kJson;
using testing::parsed;
using testing::TestServer;

TEST(StructuredOutputs, HoldAnswersToTheirForm) {
  TestServer server;
  const auto chat = [&](const std::string& field) {
    const Json body = parsed(server.client().Post(
        testing::kChat, R"({"messages":[{"role":"user","content":"Hi"}],)" + field + "}", kJson));
    EXPECT_TRUE(body.contains("choices")) << field << body.dump();
    return body.contains("choices") ? body["choices"][0]["message"]["content"].get<std::string>() : "";
  };
  const auto completion = [&](const std::string& field) {
    const Json body = parsed(
        server.client().Post("/v1/completions", R"({"prompt":"a","max_tokens":99,)" + field + "}", kJson));
    EXPECT_TRUE(body.contains("choices")) << field << body.dump();
    return body.contains("choices") ? body["choices"][0]["text"].get<std::string>() : "";
  };
  for (const std::string choice :
       {R"("structured_outputs":{"choice":["no","yes, sure"]})", R"("guided_choice":["no","yes, sure"])"}) {
    for (int i = 0; i < 3; ++i) {
      const std::string text = chat(choice);
      EXPECT_TRUE(text == "no" || text == "yes, sure") << text;
    }
  }
  const std::regex number("[0-9]{3}-[ab]+");
  for (const std::string field :
       {R"("structured_outputs":{"regex":"\\d{3}-[ab]{1,4}"})", R"("guided_regex":"\\d{3}-[ab]{1,4}")"})
    EXPECT_TRUE(std::regex_match(completion(field), number)) << field;
  for (const std::string field :
       {R"("structured_outputs":{"grammar":"root ::= d d d \"-\" [ab]{1,4}\nd ::= [0-9]"})",
        R"("guided_grammar":"root ::= [0-9]{3} \"-\" [ab]{1,4}")", R"("grammar":"root ::= [0-9]{3} \"-a\"")"})
    EXPECT_TRUE(std::regex_match(completion(field), number)) << field;
  const std::string schema =
      R"({"type":"object","properties":{"age":{"type":"integer"}},"required":["age"]})";
  for (const std::string& field :
       {R"("structured_outputs":{"json":)" + schema + "}", R"("guided_json":)" + schema,
        R"("json_schema":)" + schema, R"("guided_json":)" + Json(schema).dump()})
    EXPECT_TRUE(Json::parse(chat(field))["age"].is_number_integer()) << field;
  EXPECT_TRUE(Json::parse(chat(R"("structured_outputs":{"json_object":true})")).is_object());
}

TEST(StructuredOutputs, RefuseWhatIsNone) {
  TestServer server;
  const std::vector<std::pair<const char*, const char*>> cases{
      {R"("structured_outputs":{})", "structured_outputs"},
      {R"("structured_outputs":[])", "structured_outputs"},
      {R"("structured_outputs":{"colour":1})", "structured_outputs.colour"},
      {R"x("structured_outputs":{"regex":"(?=a)"})x", "structured_outputs.regex"},
      {R"("structured_outputs":{"regex":""})", "structured_outputs.regex"},
      {R"("structured_outputs":{"regex":["a"]})", "structured_outputs.regex"},
      {R"("structured_outputs":{"regex":"a","choice":["b"]})", "structured_outputs.choice"},
      {R"("structured_outputs":{"choice":[]})", "structured_outputs.choice"},
      {R"("structured_outputs":{"choice":["a",""]})", "structured_outputs.choice"},
      {R"("structured_outputs":{"choice":[1]})", "structured_outputs.choice"},
      {R"("structured_outputs":{"grammar":"root ::= b"})", "structured_outputs.grammar"},
      {R"("structured_outputs":{"json":5})", "structured_outputs.json"},
      {R"("guided_json":"{","n":1)", "guided_json"},
      {R"("grammar":"root ::= \"a\"","guided_regex":"a")", "grammar"},
      {R"("response_format":{"type":"json_object"},"guided_choice":["a"])", "guided_choice"},
      {R"("min_tokens":-1)", "min_tokens"},
      {R"("min_tokens":6,"max_tokens":5)", "min_tokens"},
      {R"("dry_multiplier":-1)", "dry_multiplier"},
      {R"("dry_multiplier":1,"dry_base":0.5)", "dry_base"},
      {R"("dry_allowed_length":0)", "dry_allowed_length"},
      {R"("dry_penalty_last_n":-2)", "dry_penalty_last_n"},
      {R"("dry_multiplier":1,"dry_sequence_breakers":[1])", "dry_sequence_breakers"},
      {R"("dry_multiplier":1,"dry_sequence_breakers":["two"])", "dry_sequence_breakers"},
      {R"("xtc_probability":1.5)", "xtc_probability"},
      {R"("xtc_threshold":"a")", "xtc_threshold"}};
  for (const auto& [field, param] : cases) {
    const auto result =
        server.client().Post("/v1/completions", R"({"prompt":"a",)" + std::string(field) + "}", kJson);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 400) << field << result->body;
    EXPECT_EQ(Json::parse(result->body)["error"]["param"], param) << field << result->body;
  }
  // A call cannot be demanded as well.
  EXPECT_EQ(
      server.client()
          .Post(
              testing::kChat,
              R"({"messages":[{"role":"user","content":"Hi"}],"guided_choice":["a"],"tools":[{"type":"function",)"
              R"("function":{"name":"f"}}],"tool_choice":"required"})",
              kJson)
          ->status,
      400);
}

TEST(SamplingFields, ReachTheEngine) {
  TestServer server;
  const auto result = server.client().Post(
      "/v1/completions",
      R"({"prompt":"a","max_tokens":9,"min_tokens":4,"dry_multiplier":0.8,"dry_base":1.5,"dry_allowed_length":3,)"
      R"("dry_penalty_last_n":64,"dry_sequence_breakers":["b","a"],"xtc_probability":0.5,"xtc_threshold":0.2})",
      kJson);
  EXPECT_EQ(result->status, 200) << result->body;
  EXPECT_EQ(server.client()
                .Post("/v1/completions", R"({"prompt":"a","max_tokens":2,"dry_multiplier":0.8})", kJson)
                ->status,
            200);
  const auto seen = server.engine.seen();
  const SamplingOptions& sampling = seen[0].sampling;
  EXPECT_EQ(seen[0].min_tokens, 4);
  EXPECT_EQ(sampling.repeats.multiplier, 0.8);
  EXPECT_EQ(sampling.repeats.base, 1.5);
  EXPECT_EQ(sampling.repeats.allowed_length, 3);
  EXPECT_EQ(sampling.repeats.last, 64);
  EXPECT_EQ(sampling.repeats.breakers, (std::vector<std::int32_t>{'a', 'b'}));
  EXPECT_EQ(sampling.xtc_probability, 0.5);
  EXPECT_EQ(sampling.xtc_threshold, 0.2);
  EXPECT_EQ(seen[1].sampling.repeats.breakers, (std::vector<std::int32_t>{'\n', '"', '*', ':'}));
}

}  // namespace
}  // namespace caldera
