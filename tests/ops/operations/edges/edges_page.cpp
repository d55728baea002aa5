#include <fmt/format.h>

#include <cmath>

#include "tests/ops/operations/edges/edges.h"

namespace caldera::testing {
namespace {

std::string written(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  if (x == 0) return std::signbit(x) ? "-0" : "0";
  if (x == std::trunc(x) && std::abs(x) < 1e15) return fmt::format("{:.0f}", x);
  return fmt::format("{:.5g}", x);
}

std::string written(const EdgeValue& value) {
  if (!value) return "refused";
  std::string out;
  for (const double x : *value) out += (out.empty() ? "" : " ") + written(x);
  return out.empty() ? "nothing" : out;
}

}  // namespace

std::string edges_page() {
  std::string page =
      "# Operations at their edges\n\n"
      "Made by `build/release/tests/caldera_edges > docs/guide/operation-edges.md`, which calls every "
      "operation "
      "of the [table](operations.md) that takes one or two numbers, or reduces an axis; a test holds this "
      "page "
      "to it, and every value to PyTorch's 1.13 (`tests/golden/edges/`). Floating numbers are float32. "
      "**Bold** values differ from PyTorch's; the last table says which those are, and why. Results of "
      "booleans are 0 and 1.\n";
  std::string differences;
  for (const EdgeSection& section : edge_sections()) {
    page += fmt::format("\n## {}\n\n{}\n\n|  |", section.title, section.remark);
    for (const std::string& edge : section.edges) page += fmt::format(" {} |", edge);
    page += "\n|---|";
    for (std::size_t i = 0; i < section.edges.size(); ++i) page += "---|";
    page += "\n";
    for (const std::vector<EdgeCall>& row : section.rows) {
      std::string line = fmt::format("| `{}` |", row[0].operation->name);
      for (const EdgeCall& call : row) {
        const EdgeValue ours = value_at(call, Device::cpu());
        const ForeignValue theirs = foreign_value_at(call);
        const bool same = agree(ours, theirs);
        line += same ? fmt::format(" {} |", written(ours)) : fmt::format(" **{}** |", written(ours));
        if (same) continue;
        const EdgeDifference* reason = reason_for(call);
        differences +=
            fmt::format("| `{}` | {} | {} | {} | {} |\n", call.operation->name, call.edge, written(ours),
                        written(theirs.value), reason == nullptr ? "**no reason is known**" : reason->why);
      }
      page += line + "\n";
    }
  }
  page +=
      "\n## Where PyTorch differs\n\n| operation | edge | here | PyTorch | why |\n|---|---|---|---|---|\n";
  return page + differences;
}

}  // namespace caldera::testing
