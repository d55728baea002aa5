// The page of operations in docs/ is the one that the table gives.
#include "tests/ops/operations/document.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/catalogue/table/operation.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

TEST(Document, IsTheTableOfOperations) {
  CALDERA_REQUIRE_DEVICE(Device::vulkan(0));  // one column tells what runs there
  std::ifstream file("docs/guide/operations.md");
  std::istringstream page(operations_page());
  std::string made, found;
  for (int line = 1; std::getline(page, made); ++line) {
    found.clear();
    std::getline(file, found);
    ASSERT_EQ(found, made) << "docs/guide/operations.md, line " << line
                           << ": run build/release/tests/caldera_operations > docs/guide/operations.md";
  }
  EXPECT_FALSE(std::getline(file, found)) << "docs/guide/operations.md goes on after the page: " << found;
}

TEST(Document, NoOperationLacksARule) {
  CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
  EXPECT_EQ(operations_page().find("**no**"), std::string::npos);
}

TEST(Document, NamesFromElsewhereLeadToOperations) {
  for (const ForeignName& row : foreign_names()) {
    if (row.operation == "from_vector") continue;  // a member of LazyTensor
    EXPECT_NE(catalogue::find_operation(row.operation), nullptr) << row.operation;
  }
}

}  // namespace
}  // namespace caldera::testing
