// Prints docs/guide/models.md.
#include <fmt/core.h>

#include "tests/lm/families/page.h"

int main() { fmt::print("{}", caldera::testing::models_page()); }
