// Where requests begin and end, and what clients do to a server that send slowly, by halves or all at once.
#include <gtest/gtest.h>

#include <thread>

#include "lm/serve/http/request_framing.h"
#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/raw_client.h"
#include "tests/lm/serve/replies.h"

namespace caldera {
namespace {

using namespace std::chrono_literals;
using serve::RequestFraming;
using testing::kJson;
using testing::RawClient;
using testing::TestServer;

serve::FramingLimits small_limits() {
  serve::FramingLimits limits;
  limits.max_body = 100;
  limits.max_head = 2000;
  limits.max_line = 200;
  limits.max_headers = 10;
  return limits;
}

/// The state after all bytes, which come in pieces of so many; "incomplete", "complete SIZE" or a status.
std::string framed(const std::string& bytes, std::size_t piece) {
  RequestFraming framing(small_limits());
  auto state = RequestFraming::State::head;
  for (std::size_t end = 0; end < bytes.size();) {
    end = std::min(bytes.size(), end + piece);
    state = framing.advance(std::string_view(bytes).substr(0, end));
    if (state == RequestFraming::State::refused) return std::to_string(framing.status());
    if (state == RequestFraming::State::complete) return "complete " + std::to_string(framing.size());
  }
  return "incomplete";
}

TEST(RequestFraming, TakesWhatHasOneMeaningAlone) {
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";  // 27 bytes
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string many = [] {
    std::string headers;
    for (int i = 0; i < 11; ++i) headers += "A: b\r\n";
    return headers;
  }();
  const std::vector<std::pair<std::string, std::string>> cases{
      // Bodies of a length, of chunks, and none.
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "complete 27"},
      {"GET / HTTP/1.0\r\n\r\n", "complete 18"},
      {post + "\r\n", "complete 28"},
      {post + "\r\nGET", "complete 28"},
      {post + "Content-Length: 0\r\n\r\n", "complete 47"},
      {post + "Content-Length: 3\r\n\r\nabc", "complete 50"},
      {post + "content-length:3\r\n\r\nabcGET /", "complete 49"},
      {post + "Content-Length: 3\r\n\r\nab", "incomplete"},
      {post + "Content-Length: 003\r\n\r\nabc", "complete 52"},
      {post + "Content-Length: 100\r\n\r\n", "incomplete"},
      {chunked, "incomplete"},
      {chunked + "3\r\nabc\r\n0\r\n\r\n", "complete 69"},
      {chunked + "0\r\n\r\nGET /", "complete 61"},
      {chunked + "3;name=value\r\nabc\r\n0\r\n\r\n", "complete 80"},
      {chunked + "A\r\n0123456789\r\n00\r\n\r\n", "complete 77"},
      {chunked + "3 ; a=b\r\nabc\r\n0\r\n\r\n", "complete 75"},
      {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "complete 31"},
      {chunked + "3\r\nabc\r\n", "incomplete"},
      {post + "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", "incomplete"},
      // Lengths that are told twice, or not in digits.
      {post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "400"},
      {post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "400"},
      {post + "Content-Length: 3, 3\r\n\r\nabc", "400"},
      {post + "Content-Length: +3\r\n\r\nabc", "400"},
      {post + "Content-Length: -5\r\n\r\n", "400"},
      {post + "Content-Length: 0x3\r\n\r\nabc", "400"},
      {post + "Content-Length: 3 3\r\n\r\nabc", "400"},
      {post + "Content-Length: \r\n\r\n", "400"},
      {post + "Content-Length: three\r\n\r\n", "400"},
      {post + "Content-Length: 3.0\r\n\r\n", "400"},
      {post + "Content-Length: 3,\r\n\r\nabc", "400"},
      {post + "Content-Length: 3;a\r\n\r\nabc", "400"},
      {post + "Content-Length: 3\t3\r\n\r\nabc", "400"},
      {post + "Content-Length: 1e1\r\n\r\nabc", "400"},
      {post + "Content-Length: \"3\"\r\n\r\nabc", "400"},
      {post + "Content-Length: \xEF\xBC\x93\r\n\r\nabc", "400"},
      {post + "Content-Length\t: 3\r\n\r\nabc", "400"},
      {post + "Content Length: 3\r\n\r\nabc", "400"},
      {post + "Content-Length:\r\n 3\r\n\r\nabc", "400"},
      {post + "Content-Length: 0\r\ncontent-length: 44\r\n\r\nGET /", "400"},
      {post + "Content-Length: 101\r\n\r\n", "413"},
      {post + "Content-Length: 18446744073709551619\r\n\r\nabc", "413"},
      {post + "Content-Length: 1099511627776\r\n\r\n", "413"},
      {post + "Content-Length: 99999999999999999999999\r\n\r\n", "413"},
      // Both kinds, or other codings.
      {post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", "400"},
      {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {post + "Transfer-Encoding: identity\r\n\r\n", "501"},
      {post + "Transfer-Encoding: gzip, chunked\r\n\r\n", "501"},
      {post + "Transfer-Encoding: chunked, identity\r\n\r\n", "501"},
      {post + "Transfer-Encoding: xchunked\r\n\r\n", "501"},
      {post + "Transfer-Encoding: \"chunked\"\r\n\r\n", "501"},
      {post + "Transfer-Encoding:\x0b"
              "chunked\r\n\r\n",
       "400"},
      {post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "400"},
      {post + "TE :\r\n\r\n", "400"},
      {post + "transfer-encoding: CHUNKED\r\ncontent-length: 0\r\n\r\n0\r\n\r\n", "400"},
      {post + "Transfer-Encoding: chunked\r\nTransfer-encoding: identity\r\n\r\n", "400"},
      {post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", "501"},
      {post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "501"},
      {post + "Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n", "501"},
      {post + "Transfer-Encoding: \r\n\r\n", "501"},
      {post + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", "400"},
      {post + " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {post + "\tTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {post + "A: b\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {post + "A: b\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {"POST / HTTP/1.0\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", "400"},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      // Chunks that are none.
      {chunked + "\r\n", "400"},
      {chunked + "x\r\n", "400"},
      {chunked + "-3\r\nabc\r\n", "400"},
      {chunked + "0x3\r\nabc\r\n", "400"},
      {chunked + "3\nabc\r\n", "400"},
      {chunked + "3\r\nabcd\r\n", "400"},
      {chunked + "0\r\nTrailer: a\r\n\r\n", "400"},
      {chunked + "65\r\n", "413"},
      {chunked + "fffffffffffffffff\r\n", "413"},
      {chunked + std::string(300, '0'), "400"},
      {chunked + " 3\r\nabc\r\n", "400"},
      {chunked + "3 \r\nabc\r\n", "400"},
      {chunked + "+3\r\nabc\r\n", "400"},
      {chunked + "3 3\r\nabc\r\n", "400"},
      {chunked + "3,\r\nabc\r\n", "400"},
      {chunked + ";name=value\r\n", "400"},
      {chunked + "3\r\r\nabc\r\n", "400"},
      {chunked + "3;a\rb\r\nabc\r\n", "400"},
      {chunked + "3;" + std::string(300, 'a') + "\r\nabc\r\n", "400"},
      {chunked + "3\r\nabc\n0\r\n\r\n", "400"},
      {chunked + "3\r\nabc0\r\n\r\n", "400"},
      {chunked + "\xEF\xBC\x93\r\nabc\r\n", "400"},
      {chunked + "0\r\nContent-Length: 44\r\n\r\n", "400"},
      {chunked + "0\r\n\n", "400"},
      {chunked + "ffffffffffffffff\r\n", "413"},
      {chunked + "60\r\n" + std::string(96, 'a') + "\r\n5\r\n", "413"},
      // Hosts.
      {"GET / HTTP/1.1\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},
      {"GET / HTTP/1.0\r\nHost: a\r\nhost: a\r\n\r\n", "400"},
      // Lines.
      {"GET / HTTP/1.1\nHost: a\n\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\rB: c\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\n B: c\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\n: nameless\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nB\x01: c\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nB: c\x01\r\n\r\n", "400"},
      {std::string("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 29), "400"},
      {"GET / HTTP/2.0\r\n\r\n", "400"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"},
      {"GET /\r\n\r\n", "400"},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"\x16\x03\x01\x02\n", "400"},
      {"GET http://localhost/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
      {"GET @evil.example/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"GET health HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"CONNECT localhost:80 HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "400"},
      {"GET / HTTP/1.10\r\nHost: a\r\n\r\n", "400"},
      {"GET / HTTP/01.1\r\nHost: a\r\n\r\n", "400"},
      {"GET / http/1.1\r\nHost: a\r\n\r\n", "400"},
      {"GET / HTTP/0.9\r\nHost: a\r\n\r\n", "400"},
      {"GET / a HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {std::string("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 28), "400"},
      {"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", "400"},
      {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"GET /" + std::string(300, 'a') + " HTTP/1.1\r\n", "414"},
      {"GET /" + std::string(300, 'a'), "414"},
      {"GET / HTTP/1.1\r\nHost: a\r\nB: " + std::string(3000, 'c'), "431"},
      {"GET / HTTP/1.1\r\nHost: a\r\n" + many + "\r\n", "431"},
      {post + "Expect: 200-ok\r\n\r\n", "417"},
  };
  for (const auto& [bytes, result] : cases)
    for (const std::size_t piece : {bytes.size(), std::size_t{1}, std::size_t{7}})
      EXPECT_EQ(framed(bytes, piece), result) << bytes << " in pieces of " << piece;
}

const std::string kHealth = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A request of a text, of so many bytes more than it takes.
std::string completion(std::size_t more = 0) {
  const std::string body = R"({"prompt":"a","max_tokens":2})" + std::string(more, ' ');
  return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(Connections, ManyClientsAtOnceAllHaveAnAnswer) {
  serve::ServeLimits limits;
  limits.max_clients = 4;
  TestServer server(limits);
  server.engine.token_time = 1ms;
  const auto start = std::chrono::steady_clock::now();
  std::vector<RawClient> clients;
  for (int i = 0; i < 150; ++i) clients.emplace_back(server.port);
  for (RawClient& client : clients) client.send(completion());
  int answered = 0, refused = 0;
  for (RawClient& client : clients) {
    const std::string answer = client.receive();
    if (answer.starts_with("HTTP/1.1 200")) ++answered;
    if (answer.starts_with("HTTP/1.1 429") || answer.starts_with("HTTP/1.1 503")) ++refused;
  }
  EXPECT_EQ(answered + refused, 150);
  EXPECT_GE(answered, 4);
  // Whoever is not let in by the system tries again a second later.
  EXPECT_LT(std::chrono::steady_clock::now() - start, 900ms);
}

TEST(Connections, HalfSentRequestsHoldNobodyUp) {
  serve::ServeLimits limits;
  limits.max_clients = 2;
  TestServer server(limits);
  std::vector<RawClient> slow;
  for (int i = 0; i < 300; ++i) {
    slow.emplace_back(server.port);
    if (i % 4 == 1) slow.back().send("GET /health HTTP/1.1\r\nHost: local");
    if (i % 4 == 2) slow.back().send(completion(100).substr(0, 150));
    if (i % 4 == 3)
      slow.back().send(
          "POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{");
  }
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(RawClient(server.port).ask(completion()).starts_with("HTTP/1.1 200")) << i;
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
}

TEST(Connections, SlowRequestsComeToAnEnd) {
  serve::ServeLimits limits;
  limits.read_seconds = 1;
  TestServer server(limits);
  // A byte now and then is not enough.
  for (const std::string& request : {kHealth, completion(100)}) {
    RawClient client(server.port);
    const auto start = std::chrono::steady_clock::now();
    std::string answer;
    for (std::size_t i = 0; answer.empty() && i < request.size(); ++i) {
      client.send(request.substr(i, 1));
      answer = client.receive_for(50ms);
    }
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 408")) << answer;
    EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
  }
  EXPECT_TRUE(TestServer::eventually([&] {
    return server.client().Get("/metrics")->body.find(R"(endpoint="-",status="408"} 2)") != std::string::npos;
  }));
}

TEST(Connections, RequestsThatComeTogetherAreAnsweredInTurn) {
  TestServer server;
  RawClient client(server.port);
  client.send(kHealth + completion() + "\r\n" + kHealth + "GET /no HTTP/1.1\r\nHost: a\r\n\r\n");
  std::vector<std::string> statuses;
  for (int i = 0; i < 4; ++i) statuses.push_back(client.receive().substr(0, 12));
  EXPECT_EQ(statuses,
            (std::vector<std::string>{"HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 404"}));
  // Bodies that nobody reads are not the next request.
  client.send("GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(kHealth.size()) +
              "\r\n\r\n" + kHealth + "GET /no HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(client.receive().starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(client.receive().starts_with("HTTP/1.1 404"));
}

TEST(Connections, WhatIsNoRequestIsRefusedAtOnce) {
  TestServer server;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::pair<std::string, std::string>> cases{
      {"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
      {"PUT /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"},
      {"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1099511627776\r\n\r\n", "413"},
      {"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n" + std::string(70000, 'a'), "431"}};
  for (const auto& [request, status] : cases) {
    RawClient client(server.port);
    const std::string answer = client.ask(request);
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 " + status) << request.substr(0, 100);
    const serve::Json body = serve::Json::parse(answer.substr(answer.find("\r\n\r\n") + 4), nullptr, false);
    EXPECT_TRUE(body.is_object() && body["error"]["message"].is_string()) << answer;
    const bool ends = status == "413" || status == "431";
    EXPECT_TRUE(!ends || client.closed());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
}

TEST(Connections, ClientsThatWaitAreToldToSendTheirBodies) {
  TestServer server;
  std::string request = completion();
  request.insert(request.find("Content-Length"), "Expect: 100-continue\r\n");
  const std::size_t body = request.find("\r\n\r\n") + 4;
  RawClient client(server.port);
  client.send(request.substr(0, body));
  EXPECT_EQ(client.receive_for(2s), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(request.substr(body));
  EXPECT_TRUE(client.receive().starts_with("HTTP/1.1 200"));
}

}  // namespace
}  // namespace caldera
