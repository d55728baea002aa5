// /v1/embeddings, with a model behind it and without.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>

#include "lm/models/registry.h"
#include "lm/serve/engine/model_embedder.h"
#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"
#include "tests/support/temp_folder.h"

namespace caldera {
namespace {

using serve::Json;
using testing::kChat;
using testing::kJson;
using testing::parsed;
using testing::TestServer;

constexpr const char* kEmbeddings = "/v1/embeddings";
constexpr std::int64_t kWidth = 8;

// A vector (3, 4, 0) of each text, scaled to length 1, once it is let go on.
class Letters : public serve::Embedder {
 public:
  const std::string& name() const override { return name_; }
  std::int64_t dimension() const override { return 3; }
  Widths widths() const override { return allowed; }
  std::int64_t max_tokens() const override { return 4; }
  std::int64_t vocabulary() const override { return 256; }
  Tokens tokenize(const std::string& text) const override { return {text.begin(), text.end()}; }
  std::vector<std::vector<float>> embed(const std::vector<Tokens>& texts,
                                        const std::function<bool()>& go_on) override {
    while (held) {
      ++asked;
      if (!go_on()) return {};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return std::vector<std::vector<float>>(texts.size(), {0.6F, 0.8F, 0});
  }

  Widths allowed;
  std::atomic<bool> held{false};
  std::atomic<int> asked{0};

 private:
  std::string name_ = "letters";
};

std::vector<float> numbers_of(const Json& embedding) { return embedding.get<std::vector<float>>(); }

// What the base64 of little-endian f32 says.
std::vector<float> decoded(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = (bits << 6) | static_cast<std::uint32_t>(digits.find(c));
    if ((have += 6) < 8) continue;
    have -= 8;
    bytes += static_cast<char>((bits >> have) & 0xFF);
  }
  std::vector<float> values;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 4; ++k)
      word |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i + k])) << (8 * k);
    values.push_back(std::bit_cast<float>(word));
  }
  return values;
}

TEST(ServeEmbeddings, AnswersInOpenAIsForm) {
  Letters letters;
  TestServer server(letters);
  const auto result = server.client().Post(kEmbeddings, R"({"input":["ab","c"],"model":"letters"})", kJson);
  ASSERT_EQ(result->status, 200) << result->body;
  const Json body = parsed(result);
  EXPECT_EQ(body["object"], "list");
  EXPECT_EQ(body["model"], "letters");
  EXPECT_EQ(body["usage"].dump(), R"({"prompt_tokens":3,"total_tokens":3})");
  ASSERT_EQ(body["data"].size(), 2U);
  EXPECT_EQ(body["data"][1]["object"], "embedding");
  EXPECT_EQ(body["data"][1]["index"], 1);
  EXPECT_EQ(numbers_of(body["data"][1]["embedding"]), (std::vector<float>{0.6F, 0.8F, 0}));
  const Json coded =
      parsed(server.client().Post(kEmbeddings, R"({"input":"ab","encoding_format":"base64"})", kJson));
  EXPECT_EQ(decoded(coded["data"][0]["embedding"]), (std::vector<float>{0.6F, 0.8F, 0}));
  const Json models = parsed(server.client().Get("/v1/models"));
  ASSERT_EQ(models["data"].size(), 1U);
  EXPECT_EQ(models["data"][0]["id"], "letters");
  EXPECT_EQ(models["data"][0]["max_model_len"], 4);
  EXPECT_EQ(server.client().Get("/v1/models/letters")->status, 200);
  EXPECT_EQ(server.client().Get("/metrics")->status, 200);
}

TEST(ServeEmbeddings, RefusesByName) {
  Letters letters;
  TestServer server(letters);
  const std::vector<std::pair<const char*, const char*>> cases{
      {R"({})", "'input' is missing"},
      {R"({"input":[]})", "'input' must be a string, a list"},
      {R"({"input":""})", "empty string"},
      {R"({"input":["a",""]})", "empty string"},
      {R"({"input":[[]]})", "empty list"},
      {R"({"input":[["a"]]})", "'input' must be a string, a list"},
      {R"({"input":[1,"a"]})", "'input' must be a string, a list"},
      {R"({"input":[-1]})", "an id that is none"},
      {R"({"input":[256]})", "outside of the vocabulary of 256"},
      {R"({"input":"abcde"})", "5 tokens; the model takes 4 at most"},
      {R"({"input":[1,2,3,4,5]})", "5 tokens; the model takes 4 at most"},
      {R"({"input":"a","encoding_format":"hex"})", "must be float or base64"},
      {R"({"input":"a","dimensions":0})", "'dimensions' must lie in 1"},
      {R"({"input":"a","dimensions":2})", "--matryoshka"},
      {R"({"input":"a","dimensions":4})", "the model's vectors have 3 numbers"},
      {R"({"input":"a","colour":1})", "unrecognized request argument: colour"}};
  for (const auto& [request, problem] : cases) {
    const auto result = server.client().Post(kEmbeddings, request, kJson);
    EXPECT_EQ(result->status, 400) << request;
    EXPECT_NE(result->body.find(problem), std::string::npos) << result->body;
  }
  EXPECT_EQ(server.client().Post(kEmbeddings, R"({"input":"a","model":"other"})", kJson)->status, 404);
  EXPECT_EQ(server.client().Get(kEmbeddings)->status, 405);
  for (const auto& [path, body] : std::vector<std::pair<const char*, const char*>>{
           {kChat, R"({"messages":[{"role":"user","content":"Hi"}]})"},
           {"/v1/completions", R"({"prompt":"a"})"}}) {
    const auto result = server.client().Post(path, body, kJson);
    EXPECT_EQ(result->status, 400);
    EXPECT_NE(result->body.find("gives embeddings alone"), std::string::npos) << result->body;
  }
  TestServer texts;
  const auto refused = texts.client().Post(kEmbeddings, R"({"input":"a"})", kJson);
  EXPECT_EQ(refused->status, 400);
  EXPECT_EQ(parsed(refused)["error"]["code"], "embeddings_unavailable");
}

/// Vectors of the letters a to c that a text has, at length 1.
class Counted : public Letters {
 public:
  std::int64_t max_tokens() const override { return 4; }
  std::vector<std::vector<float>> embed(const std::vector<Tokens>& texts,
                                        const std::function<bool()>& go_on) override {
    if (Letters::embed(texts, go_on).empty()) return {};
    std::vector<std::vector<float>> vectors;
    for (const Tokens& text : texts) {
      std::vector<float>& vector = vectors.emplace_back(3, 0.0F);
      for (const std::int32_t id : text) vector[static_cast<std::size_t>(id - 'a') % 3] += 1;
      const float length = std::sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]);
      for (float& x : vector) x /= length;
    }
    return vectors;
  }
};

TEST(ServeRerank, PutsDocumentsInTheOrderOfTheirCosines) {
  Counted embedder;
  TestServer server(embedder);
  const auto result = server.client().Post(
      "/v1/rerank",
      R"({"model":"letters","query":"aab","documents":["c","ab",{"text":"aab"},"b"],"top_n":3})", kJson);
  ASSERT_EQ(result->status, 200) << result->body;
  const Json body = parsed(result);
  ASSERT_EQ(body["results"].size(), 3U);
  // cos of (2,1,0) with (2,1,0), (1,1,0), (0,1,0).
  const double expected[] = {1, 3 / std::sqrt(10), 1 / std::sqrt(5)};
  const int index[] = {2, 1, 3};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(body["results"][i]["index"], index[i]);
    EXPECT_NEAR(body["results"][i]["relevance_score"].get<double>(), expected[i], 1e-6);
  }
  EXPECT_EQ(body["results"][0]["document"]["text"], "aab");
  EXPECT_EQ(body["usage"]["total_tokens"], 10);
  const Json bare = parsed(server.client().Post(
      "/rerank", R"({"query":"a","documents":["b","a"],"return_documents":false})", kJson));
  EXPECT_EQ(bare["results"][0]["index"], 1);
  EXPECT_FALSE(bare["results"][0].contains("document"));
  for (const char* wrong :
       {"{}", R"({"query":"a"})", R"({"query":"","documents":["a"]})", R"({"query":"a","documents":[]})",
        R"({"query":"a","documents":"a"})", R"({"query":"a","documents":[5]})",
        R"({"query":"a","documents":[{}]})", R"({"query":"a","documents":[{"text":5}]})",
        R"({"query":"a","documents":["a"],"top_n":0})", R"({"query":"a","documents":["a"],"colour":1})",
        R"({"query":["a"],"documents":["a"]})", R"({"query":"a","documents":[""]})",
        R"({"query":"aaaaa","documents":["a"]})"})
    EXPECT_EQ(server.client().Post("/v1/rerank", wrong, kJson)->status, 400) << wrong;
  TestServer generates;
  EXPECT_EQ(generates.client().Post("/v1/rerank", R"({"query":"a","documents":["a"]})", kJson)->status, 400);
}

TEST(ServeEmbeddings, ShortensWhereTheModelAllowsIt) {
  Letters letters;
  TestServer server(letters);
  letters.allowed.any = true;
  const auto ask = [&](int width) {
    return server.client().Post(kEmbeddings, fmt::format(R"({{"input":"a","dimensions":{}}})", width), kJson);
  };
  EXPECT_EQ(numbers_of(parsed(ask(1))["data"][0]["embedding"]), (std::vector<float>{1}));
  const std::vector<float> two = numbers_of(parsed(ask(2))["data"][0]["embedding"]);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_NEAR(two[0], 0.6, 1e-6);
  EXPECT_NEAR(two[1], 0.8, 1e-6);
  EXPECT_EQ(numbers_of(parsed(ask(3))["data"][0]["embedding"]).size(), 3U);
  letters.allowed = {false, {2}};
  EXPECT_EQ(ask(2)->status, 200);
  EXPECT_EQ(ask(3)->status, 200);
  EXPECT_EQ(ask(1)->status, 400);
  EXPECT_NE(ask(1)->body.find("3 numbers, or 2"), std::string::npos);
}

TEST(ServeEmbeddings, ObeysItsLimits) {
  Letters letters;
  letters.held = true;
  serve::ServeLimits limits;
  limits.max_clients = 1;
  TestServer server(letters, limits);
  httplib::Client client = server.client();
  std::thread first([&] { client.Post(kEmbeddings, R"({"input":"a"})", kJson); });
  ASSERT_TRUE(TestServer::eventually([&] { return letters.asked > 0; }));
  EXPECT_EQ(server.client().Post(kEmbeddings, R"({"input":"a"})", kJson)->status, 429);
  client.stop();  // who leaves gives the place up
  first.join();
  EXPECT_TRUE(TestServer::eventually([&] { return server.server->metrics().active() == 0; }));
  limits.request_seconds = 0;
  TestServer hurried(letters, limits);
  EXPECT_EQ(hurried.client().Post(kEmbeddings, R"({"input":"a"})", kJson)->status, 504);
}

// A BERT of bytes: 256 of them, bos and eos.
class ServedEmbeddings : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(dir_);
    put(Json::object());
    const auto model = make_text_model(dir_ / "config.json", Device::cpu(), 5);
    model->materialize();
    model->save(dir_);
  }
  void put(const Json& more) const {
    Json config{{"architectures", {"BertModel"}},
                {"model_type", "bert"},
                {"vocab_size", 258},
                {"hidden_size", kWidth},
                {"intermediate_size", 12},
                {"num_hidden_layers", 1},
                {"num_attention_heads", 2},
                {"max_position_embeddings", 300},
                {"initializer_range", 0.7},
                {"bos_token_id", 256},
                {"eos_token_id", 257}};
    config.update(more);
    std::ofstream(dir_ / "config.json") << config.dump();
  }
  EmbeddingModel open() const { return EmbeddingModel::from_pretrained(dir_, Device::cpu()); }

  testing::TempFolder folder_;
  const std::filesystem::path dir_ = folder_ / "model";
};

TEST_F(ServedEmbeddings, AreTheModelsOwnAtLengthOne) {
  EXPECT_TRUE(is_encoder(dir_));
  serve::ModelEmbedder embedder(open(), "bytes", {});
  TestServer server(embedder);
  // More than a batch, of lengths that put them into another order than their own.
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 70; ++i) texts.emplace_back(1 + (i * 37) % 50, static_cast<char>('a' + i % 26));
  EmbeddingModel model = open();
  EncodedTexts expected = model.encode(texts);
  std::int64_t tokens = 0;
  Json ids = Json::array();
  for (const std::string& text : texts) {
    tokens += static_cast<std::int64_t>(model.tokenize(text).size());
    ids.push_back(model.tokenize(text));
  }
  const Json body = parsed(server.client().Post(kEmbeddings, Json{{"input", texts}}.dump(), kJson));
  ASSERT_EQ(body["data"].size(), texts.size());
  EXPECT_EQ(body["usage"]["prompt_tokens"], tokens);
  const Json same = parsed(
      server.client().Post(kEmbeddings, Json{{"input", ids}, {"encoding_format", "base64"}}.dump(), kJson));
  for (std::size_t t = 0; t < texts.size(); ++t) {
    double square = 0;
    for (const float x : expected.embeddings[t]) square += static_cast<double>(x) * x;
    const std::vector<float> found = numbers_of(body["data"][t]["embedding"]);
    ASSERT_EQ(found.size(), static_cast<std::size_t>(kWidth));
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected.embeddings[t][i] / std::sqrt(square), 2e-5) << t << " " << i;
    EXPECT_EQ(decoded(same["data"][t]["embedding"]), found) << t;
  }
  const auto refused =
      server.client().Post(kEmbeddings, Json{{"input", std::string(400, 'a')}}.dump(), kJson);
  EXPECT_EQ(refused->status, 400);
  EXPECT_EQ(parsed(refused)["error"]["code"], "context_length_exceeded");
}

TEST_F(ServedEmbeddings, FilesSayWhetherTheyMayBeShortened) {
  EXPECT_FALSE(serve::ModelEmbedder(open(), "a", {}).widths().any);
  EXPECT_TRUE(serve::ModelEmbedder(open(), "a", {{}, true}).widths().any);
  put({{"is_matryoshka", true}});
  EXPECT_TRUE(serve::ModelEmbedder(open(), "a", {}).widths().any);
  put({{"is_matryoshka", true}, {"matryoshka_dimensions", {2, 4}}});
  const serve::Embedder::Widths widths = serve::ModelEmbedder(open(), "a", {}).widths();
  EXPECT_FALSE(widths.any);
  EXPECT_EQ(widths.listed, (std::vector<std::int64_t>{2, 4}));
}

TEST_F(ServedEmbeddings, RequestsTakeTurns) {
  serve::ModelEmbedder embedder(open(), "bytes", {});
  const std::vector<serve::Embedder::Tokens> many(400, serve::Embedder::Tokens(40, 65));
  const serve::Embedder::Tokens one{66, 67};
  const auto always = [] { return true; };
  const auto alone = embedder.embed({one}, always);
  // Between two batches of a large request the others get their vectors.
  std::atomic<int> served{0};
  std::vector<std::thread> others;
  int asked = 0;
  const auto vectors = embedder.embed(many, [&] {
    if (++asked != 3) return true;
    for (int i = 0; i < 4; ++i)
      others.emplace_back([&] {
        EXPECT_EQ(embedder.embed({one}, always), alone);
        ++served;
      });
    return TestServer::eventually([&] { return served == 4; });
  });
  for (std::thread& other : others) other.join();
  EXPECT_EQ(vectors.size(), many.size());
  EXPECT_EQ(served, 4);
  asked = 0;
  EXPECT_TRUE(embedder.embed(many, [&] { return ++asked < 4; }).empty());
  EXPECT_EQ(asked, 4);
}

}  // namespace
}  // namespace caldera
