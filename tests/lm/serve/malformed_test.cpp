// Requests that are damaged at random: each gets a 4xx, or an answer where it is still a request.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/lm/serve/fake_engine.h"

namespace caldera {
namespace {

using testing::TestServer;

const std::vector<std::pair<const char*, const char*>> kRequests{
    {"/v1/messages",
     R"({"model":"tiny","max_tokens":5,"system":[{"type":"text","text":"S"}],"messages":[{"role":"user","content":"Hi"},)"
     R"({"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"a":1}}]},{"role":"user","content":[)"
     R"({"type":"tool_result","tool_use_id":"a","content":"2"},{"type":"text","text":"b"}]}],"stop_sequences":["x"],)"
     R"("stream":false,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"},)"
     R"("thinking":{"type":"enabled","budget_tokens":9}})"},
    {"/v1/responses",
     R"({"model":"tiny","instructions":"S","input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]},)"
     R"({"type":"reasoning","summary":[{"type":"summary_text","text":"t"}]},{"type":"function_call","call_id":"c",)"
     R"("name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"2"}],"max_output_tokens":5,)"
     R"("tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"tool_choice":"auto","stream":false,)"
     R"("text":{"format":{"type":"text"}},"reasoning":{"effort":"low"}})"},
    {"/api/chat",
     R"({"model":"tiny:latest","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"","tool_calls":[)"
     R"({"function":{"name":"f","arguments":{}}}]},{"role":"tool","tool_name":"f","content":"2"}],"think":true,"tools":[)"
     R"({"type":"function","function":{"name":"f"}}],"options":{"num_predict":3,"temperature":0.5},"stream":false})"},
    {"/api/generate",
     R"({"prompt":"Hi","system":"S","format":"json","options":{"stop":["a"],"num_predict":4}})"},
    {"/tokenize", R"({"model":"tiny","prompt":"Hi","add_special_tokens":true})"},
    {"/detokenize", R"({"tokens":[1,2,3]})"},
    {"/v1/chat/completions",
     R"({"model":"tiny","messages":[{"role":"system","content":"S"},{"role":"user","content":[{"type":"text",)"
     R"("text":"Hi"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",)"
     R"("function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c1","content":"2"}],)"
     R"("temperature":0.5,"top_p":0.9,"n":2,"stop":["a","b"],"max_tokens":5,"presence_penalty":0.1,)"
     R"("logit_bias":{"5":-100},"seed":42,"logprobs":true,"top_logprobs":3,"stream":true,)"
     R"("stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"f",)"
     R"("parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}],"tool_choice":"auto"})"},
    {"/v1/chat/completions",
     R"({"messages":[{"role":"user","content":"Hi"}],"response_format":{"type":"json_schema","json_schema":)"
     R"({"name":"x","schema":{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/b"},)"
     R"("minItems":1},"c":{"enum":["x",1]}},"required":["a"],"$defs":{"b":{"type":"string","pattern":"^a+b?$"}}}}},)"
     R"("max_tokens":3})"},
    {"/v1/completions",
     R"({"model":"poet","prompt":["ab",[1,2,3]],"echo":true,"n":1,"best_of":1,"logprobs":2,"max_tokens":4,)"
     R"("suffix":null,"stop_token_ids":[7],"min_p":0.1,"top_k":3,"repetition_penalty":1.1,"user":"u"})"},
    {"/v1/completions",
     R"({"prompt":"a","max_tokens":4,"min_tokens":2,"dry_multiplier":0.8,"dry_base":1.5,"dry_allowed_length":2,)"
     R"("dry_penalty_last_n":9,"dry_sequence_breakers":["a"],"xtc_probability":0.5,"xtc_threshold":0.1,)"
     R"("structured_outputs":{"grammar":"root ::= (\"a\" | [b-d]{2,3})* e\ne ::= [^x] | e2+\ne2 ::= \"\\n\""}})"},
    {"/v1/completions",
     R"({"prompt":"a","max_tokens":4,"structured_outputs":{"regex":"^(?:ab|[c-e]{2,3})*\\d+$"}})"},
    {"/v1/completions", R"({"prompt":"a","max_tokens":4,"guided_choice":["yes","no"]})"},
    {"/v1/rerank", R"({"query":"a","documents":["b",{"text":"c"}],"top_n":1})"},
    {"/v1/load_lora_adapter", R"({"lora_name":"a","lora_path":"/b","load_inplace":true})"},
    {"/v1/embeddings", R"({"input":["a","b"],"model":"tiny","encoding_format":"float"})"}};

// One to four changes of bytes, or of pieces of JSON.
std::string damage(std::string text, std::mt19937& random) {
  static const std::vector<std::string> kPieces{"null",
                                                "-1",
                                                "1e999",
                                                "{}",
                                                "[]",
                                                "\"\"",
                                                "true",
                                                "\\u0000",
                                                "\xFF",
                                                "\"",
                                                "{",
                                                "]",
                                                ",",
                                                ":",
                                                "99999999999999999999",
                                                "[[[[",
                                                "\"$ref\":\"#\"",
                                                "1.5",
                                                "\\ud800",
                                                "-",
                                                "\xED\xA0\x80"};
  for (unsigned i = 1 + random() % 4; i > 0 && !text.empty(); --i) {
    const std::size_t at = random() % text.size();
    const std::size_t size = std::min<std::size_t>(1 + random() % 20, text.size() - at);
    switch (random() % 6) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, size);
        break;
      case 2:
        text.insert(at, kPieces[random() % kPieces.size()]);
        break;
      case 3:
        text.insert(at, text.substr(random() % text.size(), size));
        break;
      case 4:
        text.replace(at, 1, kPieces[random() % kPieces.size()]);
        break;
      default: {  // a whole value
        const std::size_t colon = text.find(':', at);
        if (colon == std::string::npos) break;
        const std::size_t end = text.find_first_of(",}]", colon);
        if (end != std::string::npos)
          text.replace(colon + 1, end - colon - 1, kPieces[random() % kPieces.size()]);
      }
    }
  }
  return text;
}

TEST(ServeMalformed, BodiesAreRefusedNotAnswered) {
  const char* rounds = std::getenv("CALDERA_SERVE_MUTATIONS");  // for long runs
  const int count = rounds != nullptr ? std::atoi(rounds) : 600;
  std::mt19937 random(11);
  TestServer server;
  httplib::Client client = server.client();
  client.set_keep_alive(true);
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    const auto& [path, request] = kRequests[random() % kRequests.size()];
    const std::string body = damage(request, random);
    const auto result = client.Post(path, body, "application/json");
    ASSERT_TRUE(result) << body;
    ASSERT_TRUE(result->status == 200 || (result->status >= 400 && result->status < 500))
        << result->status << " " << body << "\n"
        << result->body;
    if (result->status == 200) continue;
    EXPECT_EQ(result->body.find("json.exception"), std::string::npos) << result->body;
    ++refused;
    const serve::Json error = serve::Json::parse(result->body, nullptr, false);
    ASSERT_FALSE(error.is_discarded()) << result->body;
    const bool of_ollama = std::string_view(path).starts_with("/api/");
    ASSERT_TRUE((of_ollama ? error["error"] : error["error"]["message"]).is_string()) << result->body;
  }
  EXPECT_GT(refused, count / 2);
  EXPECT_EQ(client.Get("/health")->status, 200);
  EXPECT_TRUE(TestServer::eventually([&] { return server.engine.status().running == 0; }));
}

// Sends bytes as they are and returns what comes back until the server closes, or nothing more comes.
std::string send_raw(int port, const std::string& bytes) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    if (send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
      shutdown(socket, SHUT_WR);
      char buffer[4096];
      for (ssize_t got = 0; (got = recv(socket, buffer, sizeof(buffer), 0)) > 0;)
        answer.append(buffer, static_cast<std::size_t>(got));
    }
  }
  close(socket);
  return answer;
}

TEST(ServeMalformed, BytesThatAreNoHttpDoNoHarm) {
  std::mt19937 random(12);
  TestServer server;
  const std::string request =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "27\r\n"
      "Range: bytes=0-1\r\n\r\n{\"prompt\":\"a\",\"max_tokens\":1}";
  for (int i = 0; i < 60; ++i) {
    const std::string answer = send_raw(server.port, damage(request, random));
    if (answer.empty()) continue;
    ASSERT_TRUE(answer.starts_with("HTTP/1.")) << answer;
    ASSERT_TRUE(answer[9] == '2' || answer[9] == '4' || answer.substr(9, 3) == "100") << answer;
  }
  EXPECT_EQ(server.client().Get("/health")->status, 200);
}

}  // namespace
}  // namespace caldera
