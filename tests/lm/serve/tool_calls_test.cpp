// Calls of tools in the forms that families of models write.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "engine/base/error.h"
#include "lm/chat/tools/tool_call_parser.h"
#include "lm/chat/tools/tool_payloads.h"
#include "lm/serve/service/constraints.h"
#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"

namespace caldera {
namespace {

struct Case {
  const char* format;
  const char* text;
  const char* content;
  std::vector<ToolCall> calls;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kList{
      {"hermes",
       "Hi <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"</tool_call>\"}}\n</tool_call>\n",
       "Hi",
       {{"f", R"({"a":"</tool_call>"})"}}},
      {"hermes",
       "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>",
       "",
       {{"f", "{}"}, {"g", "{}"}}},
      {"hermes", "a < b <tool> <tool_cal", "a < b <tool> <tool_cal", {}},
      {"hermes", "<tool_call>{\"name\": broken</tool_call>", "<tool_call>{\"name\": broken</tool_call>", {}},
      {"hermes", "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}", "", {{"f", R"({"a":1})"}}},
      {"hermes", "blanks stay  \n", "blanks stay  \n", {}},
      {"mistral",
       "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": [1]}}, {\"name\": \"g\", \"arguments\": {}}]",
       "",
       {{"f", R"({"a":[1]})"}, {"g", "{}"}}},
      {"mistral",
       "[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g{\"b\": 2}",
       "",
       {{"f", R"({"a":1})"}, {"g", R"({"b":2})"}}},
      {"llama3",
       "{\"name\": \"f\", \"parameters\": {\"q\": \"x; y\"}}; {\"name\": \"g\", \"parameters\": {}}",
       "",
       {{"f", R"({"q":"x; y"})"}, {"g", "{}"}}},
      {"llama3", "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}", "", {{"f", "{}"}}},
      {"gpt-oss",
       "Look. <|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": \"<|message|>\"}",
       "Look.",
       {{"f", R"({"a":"<|message|>"})"}}},
      {"gpt-oss", " to=functions.g<|channel|>commentary json<|message|>{}", "", {{"g", "{}"}}},
      {"gpt-oss",
       "<|channel|>commentary to=functions.f <|constr",
       "<|channel|>commentary to=functions.f <|constr",
       {}},
      {"gpt-oss", "talk to=functions and <|channel|>", "talk to=functions and <|channel|>", {}},
      {"llama3", "The answer is {4}.", "The answer is {4}.", {}},
      {"llama3", "{not a call}", "{not a call}", {}},
      {"phi4",
       "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": null}}]<|/tool_call|>",
       "",
       {{"f", R"({"a":null})"}}},
      {"qwen3-coder",
       "<tool_call>\n<function=f>\n<parameter=city>\nNew\nYork\n</parameter>\n<parameter=n>\n3\n</"
       "parameter>\n"
       "</function>\n</tool_call>",
       "",
       {{"f", R"({"city":"New\nYork","n":3})"}}}};
  return kList;
}

// However the text is divided, the same is found, and what is shown before the end is a beginning of it.
TEST(ToolCalls, AreFoundInEveryForm) {
  std::mt19937 random(2);
  for (const Case& c : cases()) {
    const auto& formats = tool_formats();
    const auto format =
        std::find_if(formats.begin(), formats.end(), [&](const ToolFormat& f) { return f.name == c.format; });
    ASSERT_NE(format, formats.end());
    for (int round = 0; round < 30; ++round) {
      ToolCallParser parser(*format);
      std::string content;
      std::vector<ToolCall> calls;
      const auto take = [&](const ToolCallParser::Output& output) {
        content += output.content;
        calls.insert(calls.end(), output.calls.begin(), output.calls.end());
      };
      const std::string text = c.text;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = round == 0 ? text.size() : 1 + random() % 9;
        take(parser.push(std::string_view(text).substr(at, size)));
        at += size;
      }
      take(parser.finish());
      EXPECT_EQ(content, c.content) << c.text;
      EXPECT_TRUE(calls == c.calls) << c.text;
      EXPECT_EQ(parser.has_calls(), !c.calls.empty());
    }
  }
}

TEST(ToolFormats, WhatIsDemandedIsReadAsACall) {
  const std::string arguments = R"({"city": "Oslo", "days": [1, 2]})";
  std::size_t framed = 0;
  for (const ToolFormat& format : tool_formats()) {
    SCOPED_TRACE(format.name);
    const auto frame = detail::payload_of(format).frame(R"("weather")", format);
    if (!frame) {
      EXPECT_EQ(format.payload, "xml") << "arguments that are JSON have a frame";
      continue;
    }
    ++framed;
    ToolCallParser parser(format);
    const ToolCallParser::Output said = parser.push(frame->before + arguments + frame->after);
    const ToolCallParser::Output rest = parser.finish();
    std::vector<ToolCall> calls = said.calls;
    calls.insert(calls.end(), rest.calls.begin(), rest.calls.end());
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_EQ(calls[0].name, "weather");
    EXPECT_EQ(nlohmann::json::parse(calls[0].arguments), nlohmann::json::parse(arguments));
    EXPECT_EQ(said.content + rest.content, "");
  }
  EXPECT_GE(framed, 4U);
}

TEST(ToolFormats, APayloadThatIsNotKnownIsRefused) {
  ToolFormat format = tool_formats().front();
  format.payload = "smoke";
  EXPECT_THROW(detail::payload_of(format), ValueError);
}

// What follows the mark of a call is held to its form, what stands around calls is not.
TEST(HeldCalls, KeepToTheirSchemasOnceTheyBegin) {
  testing::TestServer server;
  std::string said;
  server.engine.reply = [&](const std::string&) { return said; };
  const auto ask = [&](const std::string& more) {
    const auto result = server.client().Post(
        testing::kChat,
        R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":900,)" + more +
            R"("tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":)"
            R"({"a":{"type":"integer"}},"required":["a"],"additionalProperties":false,"unheard":{}}}},)"
            R"({"type":"function","function":{"name":"none"}}]})",
        testing::kJson);
    EXPECT_EQ(result->status, 200) << result->body;
    return serve::Json::parse(result->body)["choices"][0];
  };
  // Right ones are not changed, whatever their blanks.
  said =
      "One < two <tool: <tool_call>{\"name\": \"add\",\"arguments\":{\"a\":1}}</tool_call> and "
      "<tool_call>\n{\"name\": \"none\", \"arguments\": {}}\n</tool_call>";
  serve::Json choice = ask("");
  EXPECT_EQ(choice["message"]["content"], "One < two <tool: and") << choice.dump();
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 2U) << choice.dump();
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], R"({"a":1})");
  EXPECT_EQ(choice["message"]["tool_calls"][1]["function"]["name"], "none");
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  // Wrong names and arguments cannot be written.
  for (const char* wrong : {"<tool_call>\n{\"name\": \"mul\", \"arguments\": {\"a\": 1}}\n</tool_call>",
                            "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"b\": 1}}\n</tool_call>",
                            "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": \"x\"}}\n</tool_call>",
                            "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}", "<tool_call>",
                            "<tool_call>nonsense</tool_call>"}) {
    said = wrong;
    choice = ask("");
    ASSERT_GE(choice["message"]["tool_calls"].size(), 1U) << wrong << choice.dump();
    for (const serve::Json& call : choice["message"]["tool_calls"]) {
      const serve::Json& function = call["function"];
      const serve::Json arguments = serve::Json::parse(function["arguments"].get<std::string>());
      const bool right = function["name"] == "add"
                             ? arguments["a"].is_number_integer() && arguments.size() == 1
                             : function["name"] == "none";
      EXPECT_TRUE(right) << wrong << call.dump();
    }
  }
  // Where one is enough the text ends with it; what is thought of is no call.
  said =
      "<think><tool_call>why</think>a<tool_call>\n{\"name\": \"none\", \"arguments\": "
      "{}}\n</tool_call><tool_call>";
  choice = ask(R"("parallel_tool_calls":false,)");
  EXPECT_EQ(choice["message"]["reasoning_content"], "<tool_call>why");
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 1U) << choice.dump();
  said = "No call at all.";
  EXPECT_EQ(ask("")["message"]["content"], said);
}

// Whatever form a family writes calls in, one and several are taken as they are demanded.
TEST(HeldCalls, TakeWhatFamiliesWrite) {
  for (const ToolFormat& format : tool_formats()) {
    SCOPED_TRACE(format.name);
    serve::ServedModel model = testing::byte_model();
    model.tools = format;
    serve::Constraints constraints(model);
    const serve::Json tools = serve::Json::parse(
        R"([{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"a":{}}}}}])");
    const auto held = constraints.begun_calls(tools, std::nullopt, true);
    EXPECT_EQ(held == nullptr, format.open.empty() || format.payload == "xml");
    if (held == nullptr) continue;
    const auto frame = detail::payload_of(format).frame(R"("add")", format);
    std::vector<std::string> texts{frame->before + R"({"a": 1})" + frame->after};
    if (format.payload == "named")
      texts.emplace_back("[TOOL_CALLS]add[ARGS]{\"a\": 1}[TOOL_CALLS]add[ARGS]{}");
    if (format.payload == "channel")
      texts.emplace_back("<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": [1]}");
    if (format.payload == "calls" || format.payload == "named")
      texts.emplace_back(std::string(format.open) + R"([{"name": "add", ")" + std::string(format.arguments) +
                         R"(": {}}, {"name": "add", ")" + std::string(format.arguments) + R"(": {"a": 2}}])" +
                         std::string(format.close));
    for (const std::string& text : texts) {
      const auto constraint = held->clone();
      for (const char c : text) {
        const std::int32_t id = static_cast<unsigned char>(c);
        ASSERT_TRUE(contains(constraint->allowed(), id)) << text << " at " << c;
        constraint->accept(id);
      }
      EXPECT_TRUE(contains(constraint->allowed(), testing::FakeEngine::kEos)) << text;
    }
  }
}

// As gpt-oss writes: what it thinks, then a message for a function, which ends the turn.
TEST(HeldCalls, KnowTheChannelsOfGptOss) {
  testing::TestServer server;
  server.model.tools = find_tool_format("{{ '<|start|>assistant to=' }}");
  ASSERT_TRUE(server.model.tools);
  EXPECT_EQ(server.model.tools->name, "gpt-oss");
  std::string said =
      "<|channel|>analysis<|message|>Ask to=functions.no.<|end|><|start|>assistant<|channel|>commentary "
      "to=functions.add <|constrain|>json<|message|>{\"a\": 1}";
  server.engine.reply = [&](const std::string&) { return said; };
  const auto ask = [&](const std::string& more) {
    const auto result = server.client().Post(
        testing::kChat,
        R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":300,)" + more +
            R"("tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":)"
            R"({"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}]})",
        testing::kJson);
    EXPECT_EQ(result->status, 200) << result->body;
    return serve::Json::parse(result->body)["choices"][0];
  };
  for (const char* wrong : {"", "\"", "}", "b"}) {
    if (*wrong != 0) said = said.substr(0, said.size() - 2) + wrong;  // what cannot be written
    const serve::Json choice = ask("");
    EXPECT_EQ(choice["message"]["reasoning_content"], "Ask to=functions.no.") << choice.dump();
    EXPECT_TRUE(choice["message"]["content"].is_null()) << choice.dump();
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1U) << choice.dump();
    const serve::Json& function = choice["message"]["tool_calls"][0]["function"];
    EXPECT_EQ(function["name"], "add");
    EXPECT_TRUE(serve::Json::parse(function["arguments"].get<std::string>())["a"].is_number_integer());
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
  }
  said = "nonsense";
  const serve::Json demanded = ask(R"("tool_choice":"required",)");
  EXPECT_EQ(demanded["message"]["tool_calls"][0]["function"]["name"], "add") << demanded.dump();
  said = "<|channel|>final<|message|>Done.";
  EXPECT_EQ(ask("")["message"]["content"], "Done.");
}

// Pieces of calls say what the calls say, however the text is divided.
TEST(ToolCallStreams, TellWhatTheCallsSay) {
  std::mt19937 random(31);
  const std::string one = R"({"city": "Oslo \"}]\\", "days": [1, {"a": "</tool_call>x"}]})";
  for (const ToolFormat& format : tool_formats()) {
    if (format.open.empty() || format.payload == "xml") continue;
    SCOPED_TRACE(format.name);
    const auto frame = detail::payload_of(format).frame(R"("weather")", format);
    const std::string object = R"({"name": "weather", ")" + std::string(format.arguments) + R"(": )";
    std::vector<std::string> texts{frame->before + one + frame->after};
    if (format.payload == "channel")
      texts.emplace_back("<|channel|>commentary to=functions.weather <|constrain|>json<|message|>" + one);
    else
      texts.emplace_back("Look. " + std::string(format.open) + object + "{}}" + std::string(format.close));
    if (format.payload == "calls" || format.payload == "named")
      texts.push_back(std::string(format.open) + "[" + object + one + "}, " + object + R"({"b": 2}}])" +
                      std::string(format.close));
    if (format.payload == "named")
      texts.emplace_back("[TOOL_CALLS]weather[ARGS]" + one + "[TOOL_CALLS]weather[ARGS]{\"c\": 3}");
    for (const std::string& text : texts) {
      for (int round = 0; round < 20; ++round) {
        ToolCallParser parser(format, true);
        std::vector<ToolCall> calls, told;
        std::size_t marked = 0;
        const auto take = [&](const ToolCallParser::Output& output) {
          calls.insert(calls.end(), output.calls.begin(), output.calls.end());
          for (const bool is_told : output.told) marked += is_told ? 1U : 0U;
          for (const ToolCallPiece& piece : output.pieces) {
            if (piece.begins) told.push_back({piece.name, ""});
            told.back().arguments += piece.arguments;
          }
        };
        for (std::size_t at = 0; at < text.size();) {
          const std::size_t size = 1 + random() % (round < 5 ? 1 : 9);
          take(parser.push(std::string_view(text).substr(at, size)));
          at += size;
        }
        take(parser.finish());
        ASSERT_EQ(told.size(), calls.size()) << text;
        EXPECT_EQ(marked, calls.size());
        for (std::size_t i = 0; i < calls.size(); ++i) {
          EXPECT_EQ(told[i].name, calls[i].name);
          EXPECT_EQ(nlohmann::json::parse(told[i].arguments), nlohmann::json::parse(calls[i].arguments))
              << text;
        }
      }
    }
  }
}

TEST(ToolCallStreams, ReachClientsAsTheyAreWritten) {
  testing::TestServer server;
  server.engine.token_time = std::chrono::microseconds(300);
  server.engine.reply = [](const std::string&) {
    return std::string(
        "Look.<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": [2, 3]}}\n</tool_call>");
  };
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]})";
  const auto streamed = server.client().Post(
      testing::kChat,
      R"({"stream":true,"max_tokens":300,"messages":[{"role":"user","content":"Hi"}],)" + tools,
      testing::kJson);
  std::string name, arguments;
  int pieces = 0;
  for (const serve::Json& event : testing::events_of(streamed->body)) {
    const serve::Json& delta = event["choices"][0]["delta"];
    if (!delta.contains("tool_calls")) continue;
    const serve::Json& call = delta["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    EXPECT_EQ(call.contains("id"), pieces == 0) << "the first has the id";
    if (call["function"].contains("name")) name += call["function"]["name"].get<std::string>();
    arguments += call["function"]["arguments"].get<std::string>();
    ++pieces;
  }
  EXPECT_EQ(name, "add");
  EXPECT_EQ(arguments, R"({"a": 1, "b": [2, 3]})");
  EXPECT_GT(pieces, 5) << streamed->body;
  // One that is cut off is told as far as it goes, and nothing of it is content.
  const auto cut = server.client().Post(
      testing::kChat,
      R"({"stream":true,"max_tokens":60,"messages":[{"role":"user","content":"Hi"}],)" + tools,
      testing::kJson);
  const std::vector<serve::Json> events = testing::events_of(cut->body);
  EXPECT_EQ(events.back()["choices"][0]["finish_reason"], "length") << cut->body;
  EXPECT_EQ(cut->body.find("tool_call>"), std::string::npos) << cut->body;
}

}  // namespace
}  // namespace caldera
