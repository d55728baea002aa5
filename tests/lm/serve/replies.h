// Reads what the server answers.
#pragma once

#include <gtest/gtest.h>
#include <httplib.h>

#include <string>
#include <vector>

#include "lm/serve/protocol/api_error.h"

namespace caldera::testing {

inline constexpr const char* kJson = "application/json";
inline constexpr const char* kChat = "/v1/chat/completions";

inline serve::Json parsed(const httplib::Result& result) {
  EXPECT_TRUE(result) << "no answer";
  return result ? serve::Json::parse(result->body) : serve::Json();
}

/// The data of the events of a stream.
inline std::vector<serve::Json> events_of(const std::string& body) {
  std::vector<serve::Json> events;
  std::size_t at = 0;
  bool done = false;
  while (at < body.size()) {
    const std::size_t end = body.find("\n\n", at);
    if (end == std::string::npos) break;
    const std::string event = body.substr(at, end - at);
    at = end + 2;
    if (event.starts_with(":")) continue;
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    EXPECT_FALSE(done) << "an event after [DONE]";
    if (event == "data: [DONE]")
      done = true;
    else
      events.push_back(serve::Json::parse(event.substr(6)));
  }
  EXPECT_TRUE(done);
  return events;
}

}  // namespace caldera::testing
