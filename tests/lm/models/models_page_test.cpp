// The page of models in docs/ is the one that the registry gives.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/lm/families/page.h"

namespace caldera::testing {
namespace {

TEST(ModelsPage, IsTheRegistry) {
  std::ifstream file("docs/guide/models.md");
  std::ostringstream found;
  found << file.rdbuf();
  EXPECT_EQ(found.str(), models_page()) << "run build/release/tests/caldera_models > docs/guide/models.md";
}

}  // namespace
}  // namespace caldera::testing
