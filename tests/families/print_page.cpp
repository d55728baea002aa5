// Prints docs/models.md.
#include <fmt/core.h>

#include "tests/families/page.h"

int main() { fmt::print("{}", caldera::testing::models_page()); }
