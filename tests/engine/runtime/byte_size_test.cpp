// Sizes in bytes as people write them.
#include "engine/base/byte_size.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace caldera::testing {
namespace {

TEST(ByteSize, RoundedUpIsALimitThatSuffices) {
  for (std::int64_t bytes = 1; bytes < std::int64_t{1} << 42; bytes = bytes * 17 / 13 + 1)
    EXPECT_GE(parse_bytes(format_bytes_up(bytes), "size"), static_cast<std::uint64_t>(bytes)) << bytes;
  EXPECT_EQ(format_bytes_up(1025), "1.01 KiB");
  EXPECT_EQ(format_bytes(1025), "1.00 KiB");
  EXPECT_EQ(format_bytes_up(1 << 20), "1.00 MiB");
}

TEST(ByteSize, NumbersWithUnits) {
  const std::vector<std::pair<std::string, std::uint64_t>> cases{
      {"1", 1},
      {"1048576", 1048576},
      {"7B", 7},
      {"512MiB", 536870912},
      {"512 MiB", 536870912},
      {"512mib", 536870912},
      {"2GB", 2000000000},
      {"3kB", 3000},
      {"3KiB", 3072},
      {"1.5GiB", 1610612736},
      {"0.5TiB", 549755813888},
      {"4TB", 4000000000000},
      {"1.0001kB", 1000},
  };
  for (const auto& [text, bytes] : cases) EXPECT_EQ(parse_bytes(text, "x"), bytes) << text;
}

TEST(ByteSize, AnythingElseIsAnErrorThatNamesItsSource) {
  for (const char* text : {"", " ", "MiB", "0", "0.2", "-1", "-1MiB", "12XiB", "1  MiB", "1MiB ", " 1MiB",
                           "1e3", "inf", "nan", "0x10", "1,5GiB", "99999999TiB", "1 2"}) {
    try {
      parse_bytes(text, "--memory-limit");
      ADD_FAILURE() << '\'' << text << "' is taken for a size";
    } catch (const ValueError& error) {
      EXPECT_NE(std::string(error.what()).find("--memory-limit"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace caldera::testing
