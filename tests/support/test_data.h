// Finds test data that is not in the repository.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string_view>

namespace caldera::testing {

/// Path of `relative` under $CALDERA_TEST_DATA (default: ../shared/data beside the repository); nothing if
/// absent.
std::optional<std::filesystem::path> test_data(std::string_view relative);

}  // namespace caldera::testing

/// Declares `var`, the path of a file or folder of test data, or skips the test and names what is missing.
/// For the body of a test (or SetUp), because it returns.
#define CALDERA_REQUIRE_DATA(var, relative)                                                                \
  const std::optional<std::filesystem::path> var##_or_none = ::caldera::testing::test_data(relative);      \
  if (!var##_or_none) GTEST_SKIP() << "test data not found: " << (relative) << " (set CALDERA_TEST_DATA)"; \
  const std::filesystem::path& var = *var##_or_none
