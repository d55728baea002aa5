// What operations give at edges is what PyTorch gives, or differs for a reason that the page says; on every
// device.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/ops/operations/edges/edges.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

std::string listed(const EdgeValue& value) { return value ? ::testing::PrintToString(*value) : "refused"; }

TEST(OperationEdges, ThePageIsTheOneThatTheCallsGive) {
  std::ifstream file("docs/guide/operation-edges.md");
  std::stringstream found;
  found << file.rdbuf();
  EXPECT_EQ(found.str(), edges_page())
      << "run build/release/tests/caldera_edges > docs/guide/operation-edges.md";
}

TEST(OperationEdges, AreThoseOfPyTorchOrDifferForAReason) {
  std::set<const EdgeDifference*> used;
  std::size_t compared = 0;
  for (const EdgeSection& section : edge_sections()) {
    for (const std::vector<EdgeCall>& row : section.rows) {
      for (const EdgeCall& call : row) {
        const EdgeValue ours = value_at(call, Device::cpu());
        const ForeignValue theirs = foreign_value_at(call);
        compared += theirs.known ? 1 : 0;
        if (agree(ours, theirs)) continue;
        const EdgeDifference* reason = reason_for(call);
        EXPECT_NE(reason, nullptr) << call.key << ": " << listed(ours) << ", PyTorch gives "
                                   << listed(theirs.value);
        used.insert(reason);
      }
    }
  }
  EXPECT_GE(compared, 1000u);
  for (const EdgeDifference& row : edge_differences())
    EXPECT_TRUE(used.contains(&row)) << row.operation << " " << row.edge << " does not differ";
}

TEST(OperationEdges, AreTheSameOnVulkan) {
  const Device device = Device::vulkan(0);
  CALDERA_REQUIRE_DEVICE(device);
  for (const EdgeSection& section : edge_sections()) {
    for (const std::vector<EdgeCall>& row : section.rows) {
      for (const EdgeCall& call : row) {
        const EdgeValue ours = value_at(call, Device::cpu()), there = value_at(call, device);
        ASSERT_EQ(ours.has_value(), there.has_value()) << call.key;
        EXPECT_TRUE(agree(there, {.known = true, .value = ours}))
            << call.key << ": " << listed(there) << ", on the CPU " << listed(ours);
      }
    }
  }
}

}  // namespace
}  // namespace caldera::testing
