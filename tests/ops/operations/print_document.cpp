// Prints docs/guide/operations.md.
#include <fmt/core.h>

#include "tests/ops/operations/document.h"

int main() { fmt::print("{}", caldera::testing::operations_page()); }
