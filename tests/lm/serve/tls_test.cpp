// Encrypted connections, with a certificate that the test makes.
#include "lm/serve/http/tls.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/lm/serve/fake_engine.h"
#include "tests/lm/serve/replies.h"
#include "tests/support/temp_folder.h"

#if defined(CALDERA_HAS_TLS) && defined(CPPHTTPLIB_OPENSSL_SUPPORT)
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#endif

namespace caldera {
namespace {

using testing::TempFolder;
using testing::TestServer;

#if defined(CALDERA_HAS_TLS) && defined(CPPHTTPLIB_OPENSSL_SUPPORT)

/// Writes a certificate for this machine, signed by itself, and its key.
void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key) {
  EVP_PKEY* pair = EVP_EC_gen("P-256");
  X509* x509 = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), 0);
  X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
  X509_set_pubkey(x509, pair);
  X509_NAME* name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"),
                             -1, -1, 0);
  X509_set_issuer_name(x509, name);
  X509_sign(x509, pair, EVP_sha256());
  FILE* file = std::fopen(certificate.c_str(), "w");
  PEM_write_X509(file, x509);
  std::fclose(file);
  file = std::fopen(key.c_str(), "w");
  PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(x509);
  EVP_PKEY_free(pair);
}

class Tls : public ::testing::Test {
 protected:
  Tls() : certificate(folder.path() / "cert.pem"), key(folder.path() / "key.pem") {
    write_certificate(certificate, key);
    options.tls_certificate = certificate;
    options.tls_key = key;
  }

  TempFolder folder;
  std::filesystem::path certificate, key;
  serve::ServerOptions options;
};

TEST_F(Tls, RequestsAreAnsweredAsWithout) {
  TestServer server({}, options);
  server.engine.token_time = std::chrono::microseconds(200);
  httplib::SSLClient client("127.0.0.1", server.port);
  client.enable_server_certificate_verification(false);
  client.set_keep_alive(true);
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.Post("/v1/completions", R"({"prompt":"a","max_tokens":20})", testing::kJson);
    ASSERT_TRUE(answer) << httplib::to_string(answer.error());
    EXPECT_EQ(serve::Json::parse(answer->body)["choices"][0]["text"], "Hello, world!");
  }
  const auto streamed = client.Post(
      testing::kChat, R"({"stream":true,"messages":[{"role":"user","content":"Hi"}]})", testing::kJson);
  ASSERT_TRUE(streamed);
  EXPECT_GE(testing::events_of(streamed->body).size(), 13U);
  // A body of many records.
  const auto long_one =
      client.Post("/tokenize", R"({"prompt":")" + std::string(3000000, 'x') + R"("})", testing::kJson);
  ASSERT_TRUE(long_one);
  EXPECT_EQ(serve::Json::parse(long_one->body)["count"].get<int>(), 3000001);
  const auto too_long = client.Post("/tokenize", std::string(9 << 20, 'x'), testing::kJson);
  if (too_long) {
    EXPECT_EQ(too_long->status, 413);
  }
}

TEST_F(Tls, ClientsThatLeaveAreNoticed) {
  TestServer server({}, options);
  server.engine.token_time = std::chrono::milliseconds(5);
  server.engine.reply = [](const std::string&) { return std::string(4000, 'x'); };
  {
    httplib::SSLClient client("127.0.0.1", server.port);
    client.enable_server_certificate_verification(false);
    std::size_t seen = 0;
    httplib::Request request;
    request.method = "POST";
    request.path = testing::kChat;
    request.headers = {{"Content-Type", testing::kJson}};
    request.body = R"({"stream":true,"messages":[{"role":"user","content":"Hi"}]})";
    request.content_receiver = [&](const char*, std::size_t size, std::uint64_t, std::uint64_t) {
      return (seen += size) < 500;
    };
    client.send(request);
  }
  EXPECT_TRUE(TestServer::eventually([&] { return server.engine.cancelled > 0; }));
}

TEST_F(Tls, WhatIsNoHandshakeEnds) {
  TestServer server({}, options);
  httplib::Client plain("127.0.0.1", server.port);
  const auto answer = plain.Get("/health");
  EXPECT_TRUE(!answer || answer->status >= 400);
  httplib::SSLClient client("127.0.0.1", server.port);
  client.enable_server_certificate_verification(false);
  EXPECT_EQ(client.Get("/health")->status, 200);
}

TEST_F(Tls, FilesThatDoNotFitAreRefused) {
  const auto open = [](const std::filesystem::path& one, const std::filesystem::path& other) {
    const serve::TlsContext context(one, other);
  };
  open(certificate, key);
  EXPECT_THROW(open(key, key), FileError);
  EXPECT_THROW(open(certificate, certificate), FileError);
  EXPECT_THROW(open(folder.path() / "absent", key), FileError);
  std::ofstream(folder.path() / "junk.pem")
      << "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  EXPECT_THROW(open(folder.path() / "junk.pem", key), FileError);
  write_certificate(folder.path() / "other.pem", folder.path() / "other.key");
  EXPECT_THROW(open(certificate, folder.path() / "other.key"), FileError);
}

#else

TEST(Tls, IsRefusedWithoutOpenSsl) { EXPECT_THROW(serve::TlsContext("a", "b"), FileError); }

#endif

}  // namespace
}  // namespace caldera
