// Which hosts and origins a server answers to: what browsers send for pages of other sites, with names that
// were pointed at this machine (DNS rebinding).
#include "lm/serve/http/guard.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "lm/serve/protocol/api_error.h"

namespace caldera {
namespace {

using serve::Guard;

/// The status that a request with these headers gets.
int status_of(const serve::GuardOptions& options, const httplib::Headers& headers) {
  httplib::Request request;
  request.headers = headers;
  try {
    Guard(options).check_site(request);
  } catch (const serve::ApiError& error) {
    return error.status();
  }
  return 200;
}

struct SiteCase {
  const char* host;    // null: no such header
  const char* origin;  // likewise
  int status;
};

constexpr const char* kNone = nullptr;

httplib::Headers headers_of(const SiteCase& c) {
  httplib::Headers headers;
  if (c.host != nullptr) headers.emplace("Host", c.host);
  if (c.origin != nullptr) headers.emplace("Origin", c.origin);
  return headers;
}

TEST(Guard, ALocalServerAnswersToItsOwnNamesAlone) {
  const std::string long_name = std::string(300, 'a') + ".localhost";
  const std::vector<SiteCase> cases{
      // Its own names, as browsers and programs write them.
      {"127.0.0.1:8080", kNone, 200},
      {"127.0.0.1", kNone, 200},
      {"127.0.0.1:", kNone, 200},
      {"127.0.0.1.", kNone, 200},
      {"127.1.2.3:8080", kNone, 200},
      {"127.255.255.255", kNone, 200},
      {"localhost", kNone, 200},
      {"localhost:1", kNone, 200},
      {"LOCALHOST:8080", kNone, 200},
      {"localhost.:8080", kNone, 200},
      {"caldera.localhost:8080", kNone, 200},
      {"[::1]", kNone, 200},
      {"[::1]:8080", kNone, 200},
      {"[0:0:0:0:0:0:0:1]:8080", kNone, 200},
      {"[::ffff:127.0.0.1]:8080", kNone, 200},
      {kNone, kNone, 200},
      // Names of others, which may lead here.
      {"127.evil.example", kNone, 403},
      {"127.evil.example:8080", kNone, 403},
      {"127.0.0.1.nip.io", kNone, 403},
      {"127.0.0.1.evil.example:8080", kNone, 403},
      {"127-0-0-1.evil.example", kNone, 403},
      {"evil.example", kNone, 403},
      {"localhost.evil.example", kNone, 403},
      {"evil-localhost", kNone, 403},
      {"notlocalhost", kNone, 403},
      {"localhostx", kNone, 403},
      {"localhost..", kNone, 403},
      {".localhost", kNone, 403},
      {"evil..localhost", kNone, 403},
      {"0.0.0.0", kNone, 403},
      {"0", kNone, 403},
      {"[::]", kNone, 403},
      {"10.0.0.1", kNone, 403},
      {"128.0.0.1", kNone, 403},
      {"169.254.169.254", kNone, 403},
      {"[::ffff:10.0.0.1]", kNone, 403},
      {"[fe80::1]", kNone, 403},
      // What is no host: a browser would have written the address out.
      {"127.1", kNone, 403},
      {"127.0.1", kNone, 403},
      {"127", kNone, 403},
      {"2130706433", kNone, 403},
      {"0x7f000001", kNone, 403},
      {"0x7f.1", kNone, 403},
      {"0177.0.0.1", kNone, 403},
      {"127.0.0.01", kNone, 403},
      {"127.0.0.256", kNone, 403},
      {"127.0.0.1.1", kNone, 403},
      {"127.0.0.-1", kNone, 403},
      {"127.0.0.1%00.evil.example", kNone, 403},
      {"a@localhost", kNone, 403},
      {"localhost@evil.example", kNone, 403},
      {"localhost/evil", kNone, 403},
      {"localhost evil.example", kNone, 403},
      {"localhost,evil.example", kNone, 403},
      {"localhost:8080:9090", kNone, 403},
      {"localhost:port", kNone, 403},
      {"localhost:-1", kNone, 403},
      {"localhost:65536", kNone, 403},
      {"localhost:99999999999", kNone, 403},
      {"[::1", kNone, 403},
      {"::1", kNone, 403},
      {"[::1%25eth0]", kNone, 403},
      {"[127.0.0.1]", kNone, 403},
      {"[::1]evil.example", kNone, 403},
      {"", kNone, 403},
      {":8080", kNone, 403},
      {"\xD0\xB0.localhost", kNone, 403},
      {long_name.c_str(), kNone, 403},
      {"127.0.0.1.localhost.evil.example", kNone, 403},
      {"localhost.localdomain", kNone, 403},
      {"ip6-localhost", kNone, 403},
      {"127.0.0.1\tevil.example", kNone, 403},
      {"127.0.0.1#evil.example", kNone, 403},
      {"127.0.0.1?evil.example", kNone, 403},
      {"127.0.0.1\\evil.example", kNone, 403},
      {"http://127.0.0.1", kNone, 403},
      {"127.0.0.1:8080/", kNone, 403},
      {"127.0.0.1: 8080", kNone, 403},
      {"127.0.0.1:8080 ", kNone, 403},
      {"127.0.0.1:0x1f90", kNone, 403},
      {"127.0.0.1:+8080", kNone, 403},
      {"[::127.0.0.1]", kNone, 403},
      {"[::1%lo]", kNone, 403},
      {"[0:0:0:0:0:0:0:2]", kNone, 403},
      {"[::ffff:7f00:1].evil.example", kNone, 403},
      {"[]", kNone, 403},
      {"xn--lcalhost-mdb", kNone, 403},
      {"lo\xC5\x8D"
       "calhost",
       kNone, 403},
      // Pages of its own.
      {"127.0.0.1:8080", "http://127.0.0.1:8080", 200},
      {"127.0.0.1", "http://127.0.0.1", 200},
      {"127.0.0.1:80", "http://127.0.0.1", 200},
      {"127.0.0.1", "http://127.0.0.1:80", 200},
      {"127.0.0.1", "https://127.0.0.1", 200},
      {"LocalHost:8080", "http://localhost:8080", 200},
      {"[::1]:8080", "http://[::1]:8080", 200},
      // Pages of other sites, and of other programs on this machine.
      {"127.0.0.1:8080", "http://evil.example", 403},
      {"127.0.0.1:8080", "http://evil.example:8080", 403},
      {"127.0.0.1:8080", "http://127.0.0.1:3000", 403},
      {"127.0.0.1:8080", "http://127.0.0.1", 403},
      {"127.0.0.1:8080", "http://localhost:8080", 403},
      {"127.0.0.1:8080", "http://127.0.0.1:8080.evil.example", 403},
      {"127.0.0.1:8080", "http://127.0.0.1:8080@evil.example", 403},
      {"127.0.0.1:8080", "http://evil.example/http://127.0.0.1:8080", 403},
      {"127.0.0.1:8080", "http://127.0.0.1:8080/", 403},
      {"127.0.0.1:8080", "http://127.0.0.1:8080 http://evil.example", 403},
      {"127.0.0.1:8080", "ftp://127.0.0.1:8080", 403},
      {"127.0.0.1:8080", "file://127.0.0.1:8080", 403},
      {"127.0.0.1:8080", "127.0.0.1:8080", 403},
      {"127.0.0.1:8080", "//127.0.0.1:8080", 403},
      {"127.0.0.1:8080", "null", 403},
      {"127.0.0.1:8080", "*", 403},
      {"127.0.0.1:8080", "", 403},
      {"127.0.0.1", "https://127.0.0.1:80", 403},
      {kNone, "http://127.0.0.1:8080", 403},
      {"127.evil.example:8080", "http://127.evil.example:8080", 403},
      {"evil.example:80", "http://evil.example:80", 403},
      {"127.0.0.1:8080", "http://0.0.0.0:8080", 403},
      {"127.0.0.1:8080", "http://[::1]:8080", 403},
      {"127.0.0.1:8080", "http://127.0.0.2:8080", 403},
      {"127.0.0.1:8080", "http://127.0.0.1:08080", 403},
      {"127.0.0.1:8080", "http://127.0.0.1:8080#", 403},
      {"127.0.0.1:8080", "http://user@127.0.0.1:8080", 403},
      {"127.0.0.1:8080", "http:127.0.0.1:8080", 403},
      {"127.0.0.1:8080", "://127.0.0.1:8080", 403},
      {"127.0.0.1:8080", "javascript://127.0.0.1:8080", 403},
      {"127.0.0.1:8080", "chrome-extension://127.0.0.1:8080", 403},
      {"127.0.0.1:8080", "ws://127.0.0.1:8080", 403},
      {"localhost:8080", "http://localhost.evil.example:8080", 403},
      {"localhost:8080", "http://caldera.localhost:8080", 403},
      {"localhost:443", "http://localhost", 403},
      {"", "http://127.0.0.1", 403},
  };
  for (const char* listens : {"127.0.0.1", "localhost", "::1"})
    for (const SiteCase& c : cases)
      EXPECT_EQ(status_of({.host = listens, .origins = {}}, headers_of(c)), c.status)
          << (c.host == nullptr ? "-" : c.host) << " " << (c.origin == nullptr ? "-" : c.origin);
}

TEST(Guard, AnOpenServerAnswersToAnyName) {
  const std::vector<SiteCase> cases{
      {"192.168.1.5:8080", kNone, 200},
      {"models.example", kNone, 200},
      {"models.example", "https://models.example", 200},
      {"models.example", "http://models.example:443", 403},
      {"models.example", "http://evil.example", 403},
      {"models.example, evil.example", "http://evil.example", 403},
  };
  for (const char* listens : {"0.0.0.0", "::", "192.168.1.5", "127.evil.example"})
    for (const SiteCase& c : cases)
      EXPECT_EQ(status_of({.host = listens, .origins = {}}, headers_of(c)), c.status) << c.host;
}

TEST(Guard, SitesThatAreNamedMayAsk) {
  const serve::GuardOptions options{
      .host = "127.0.0.1",
      .origins = {"https://Models.Example", "http://localhost:3000", "chrome-extension://abcd"}};
  const std::vector<SiteCase> cases{
      {"127.0.0.1:8080", "https://models.example", 200},
      {"127.0.0.1:8080", "https://models.example:443", 200},
      {"127.0.0.1:8080", "http://localhost:3000", 200},
      {"127.0.0.1:8080", "chrome-extension://abcd", 200},
      {"models.example", kNone, 200},  // what a proxy in front passes on
      {"127.0.0.1:8080", "http://models.example", 403},
      {"127.0.0.1:8080", "https://models.example:8443", 403},
      {"127.0.0.1:8080", "https://models.example.evil.example", 403},
      {"127.0.0.1:8080", "http://localhost:3001", 403},
      {"127.0.0.1:8080", "null", 403},
      {"other.example", "https://models.example", 403},
  };
  for (const SiteCase& c : cases) EXPECT_EQ(status_of(options, headers_of(c)), c.status) << c.origin;
  const serve::GuardOptions any{.host = "127.0.0.1", .origins = {"*"}};
  EXPECT_EQ(status_of(any, {{"Host", "localhost"}, {"Origin", "null"}}), 200);
  EXPECT_EQ(status_of(any, {{"Host", "evil.example"}}), 403);
  for (const char* wrong : {"models.example", "https://models.example/", "https://", "http://a b", ""})
    EXPECT_THROW(Guard({.host = "127.0.0.1", .origins = {wrong}}), ValueError) << wrong;
}

TEST(Guard, SeveralHostsOrOriginsAreNone) {
  const serve::GuardOptions options{.host = "127.0.0.1", .origins = {}};
  EXPECT_EQ(status_of(options, {{"Host", "localhost"}, {"Host", "evil.example"}}), 400);
  EXPECT_EQ(
      status_of(options,
                {{"Host", "localhost"}, {"Origin", "http://localhost"}, {"Origin", "http://evil.example"}}),
      400);
}

TEST(Guard, TheSchemeOfAKeyIgnoresCase) {
  const auto key = [](const char* name, const char* value) {
    httplib::Request request;
    request.headers = {{name, value}};
    return serve::key_of(request);
  };
  EXPECT_EQ(key("Authorization", "Bearer sesame"), "sesame");
  EXPECT_EQ(key("authorization", "bearer sesame"), "sesame");
  EXPECT_EQ(key("Authorization", "BEARER  sesame"), "sesame");
  EXPECT_EQ(key("x-api-key", "sesame"), "sesame");
  EXPECT_EQ(key("Authorization", "sesame"), "");
  EXPECT_EQ(key("Authorization", "Bearer"), "");
  EXPECT_EQ(key("Authorization", "Basic sesame"), "");
}

}  // namespace
}  // namespace caldera
