// Blocks of arguments: what is written is what the shader's text declares, by name, size and order.
#include "engine/device/vulkan/record/argument_block.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/vulkan/pipelines/embedded_shaders.h"

namespace caldera::vulkan {
namespace {

constexpr const char* kText = R"(
struct View {
  int bias;
  int rows, columns;  // strides
};
layout(buffer_reference) readonly buffer Arguments {
  Floats x, y;
  uvec2 memory[OPERANDS];
  KERNEL_SLOTS
  int m, n;  // extents
  int batch[2];
  View views[OPERANDS];
  KERNEL_INTEGERS
};
)";

std::string members(const DeclaredBlock& block) {
  std::string text;
  for (const DeclaredBlock::Member& m : block.members())
    text += m.name + ":" + std::to_string(m.words) + "x" + std::to_string(m.count) + " ";
  return text;
}

TEST(DeclaredBlock, IsReadFromTheText) {
  EXPECT_EQ(members(DeclaredBlock("test", kText)),
            "x:2x1 y:2x1 memory:2x0 KERNEL_SLOTS:0x0 m:1x1 n:1x1 batch:1x2 views:3x0 KERNEL_INTEGERS:0x0 ");
  EXPECT_EQ(members(DeclaredBlock("test", kText, "View")), "bias:1x1 rows:1x1 columns:1x1 ");
  EXPECT_THROW(DeclaredBlock("test", kText, "Vie"), Error);
}

TEST(DeclaredBlock, ShadersThatAreWrittenByHandDeclareTheirs) {
  for (const char* name : {"attention", "indexed", "quantized", "transpose"})
    EXPECT_GT(DeclaredBlock(name, shader_text(name)).members().size(), 8U) << name;
  EXPECT_EQ(DeclaredBlock("matmul", shader_text("matmul"), "Block").members()[0].words, 6U);
}

/// Writes the block of kText, but what `change` does in the place of one of its members.
std::string problem_with(const std::string& member, const std::function<void(ArgumentBlock&)>& change) {
  Plan plan;
  plan.buffers.resize(1);
  Recording recording;
  TableWriter table(plan, recording);
  const DeclaredBlock declared("test", kText);
  Step step;
  step.dims = Shape{1};
  ArgumentBlock block(table, step, declared);
  const auto write = [&](const char* name, const std::function<void()>& usual) {
    if (member == name)
      change(block);
    else
      usual();
  };
  try {
    write("x", [&] { block.integers("x", {1, 2}); });
    write("y", [&] { block.integers("y", {3, 4}); });
    write("memory", [&] { block.integers("memory", {5, 6, 7, 8}); });
    write("slots", [&] { block.generated("KERNEL_SLOTS").integer(9, step); });
    write("m", [&] { block.integer("m", 10); });
    write("n", [&] { block.integer("n", 11); });
    write("batch", [&] { block.integers("batch", {12, 13}); });
    write("views", [&] { block.integers("views", {14, 15, 16}); });
    write("integers", [&] { block.generated("KERNEL_INTEGERS"); });
    block.end();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ArgumentBlock, IsWrittenAsItIsDeclared) { EXPECT_EQ(problem_with("nothing", {}), ""); }

TEST(ArgumentBlock, SaysWhatIsWrittenOtherwise) {
  const std::string swapped = problem_with("m", [](ArgumentBlock& b) { b.integer("n", 10); });
  EXPECT_NE(swapped.find("shader test"), std::string::npos) << swapped;
  EXPECT_NE(swapped.find("'m', where 'n'"), std::string::npos) << swapped;
  using Change = std::function<void(ArgumentBlock&)>;
  const std::vector<std::pair<const char*, Change>> changes{
      {"x", [](ArgumentBlock& b) { b.integer("x", 1); }},
      {"m",
       [](ArgumentBlock& b) {
         b.integers("m", {1, 2});
       }},
      {"m", [](ArgumentBlock&) {}},
      {"batch",
       [](ArgumentBlock& b) {
         b.integers("batch", {1, 2, 3});
       }},
      {"views",
       [](ArgumentBlock& b) {
         b.integers("views", {1, 2});
       }},
      {"integers", [](ArgumentBlock&) {}},
  };
  for (const auto& [member, change] : changes) EXPECT_NE(problem_with(member, change), "") << member;
}

}  // namespace
}  // namespace caldera::vulkan
