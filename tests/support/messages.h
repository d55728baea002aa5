// The texts of errors that tests provoke.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace caldera::testing {

/// The message of the exception of type E that `body` throws.
template <class E, class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing of the expected type was thrown";
  return "";
}
#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

}  // namespace caldera::testing
