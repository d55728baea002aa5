#include "tests/support/test_data.h"

#include <cstdlib>
#include <system_error>

namespace caldera::testing {

std::optional<std::filesystem::path> test_data(std::string_view relative) {
  const char* root = std::getenv("CALDERA_TEST_DATA");
  std::filesystem::path path =
      root != nullptr && *root != '\0'
          ? std::filesystem::path(root)
          : std::filesystem::path(CALDERA_SOURCE_ROOT).parent_path() / "shared" / "data";
  path /= relative;
  std::error_code unreadable;  // An absent folder and one we may not enter are alike here.
  if (!std::filesystem::exists(path, unreadable)) return std::nullopt;
  return path;
}

}  // namespace caldera::testing
