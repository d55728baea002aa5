// Prints docs/guide/operation-edges.md, or with --calls what tests/golden/edges/generate.py reads.
#include <fmt/core.h>

#include <string_view>

#include "tests/ops/operations/edges/edges.h"

int main(int count, char** words) {
  const bool calls = count > 1 && std::string_view(words[1]) == "--calls";
  fmt::print("{}", calls ? caldera::testing::edge_calls_as_json() : caldera::testing::edges_page());
}
