// The compiler's passes as a list: which run, in which order, and what can be seen between two of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/caldera.h"
#include "engine/compile/compile.h"
#include "engine/runtime/capture/graph_key.h"
#include "tests/support/plans/named_programs.h"

namespace caldera::testing {
namespace {

struct Dump {
  std::vector<std::string> names;
  std::vector<std::string> texts;
  std::shared_ptr<const Plan> plan;
};

Dump compile_with_dump(std::string_view program, bool fusion) {
  const std::vector<LazyTensor> outputs = named_program(program).build(Device::null());
  const std::scoped_lock lock(graph_mutex());
  GraphKey key;
  key.reset(Device::null());
  for (const LazyTensor& output : outputs) key.outputs.push_back(&output.node());
  key.fill();
  Dump dump;
  CompileOptions options{.fusion = fusion};
  options.after_pass = [&](std::string_view pass, const std::function<std::string()>& text) {
    dump.names.emplace_back(pass);
    dump.texts.push_back(text());
  };
  dump.plan = compile(key.program(), options);
  return dump;
}

TEST(Passes, ADumpNamesEachOnceInOrder) {
  const Dump dump = compile_with_dump("training step", true);
  const std::vector<std::string_view> all = pass_names();
  EXPECT_EQ(dump.names, std::vector<std::string>(all.begin(), all.end()));
  for (std::size_t i = 0; i < dump.texts.size(); ++i) EXPECT_FALSE(dump.texts[i].empty()) << dump.names[i];
  EXPECT_EQ(dump.texts.back(), dump.plan->to_string());
  std::vector<std::string> sorted = dump.names;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end());
}

TEST(Passes, WithoutFusionThoseThatFuseAreLeftOut) {
  std::vector<std::string> wanted;
  for (std::string_view name : pass_names()) {
    if (name != "products" && name != "attention" && name != "turned_products" && name != "layouts" &&
        name != "join" && name != "follow" && name != "lower" && name != "finish")
      wanted.emplace_back(name);
  }
  EXPECT_EQ(compile_with_dump("training step", false).names, wanted);
}

TEST(Passes, ADumpShowsWhatAPassHasMade) {
  const Dump dump = compile_with_dump("training step", true);
  const auto text_after = [&](std::string_view pass) {
    const auto at = std::find(dump.names.begin(), dump.names.end(), pass) - dump.names.begin();
    return dump.texts.at(static_cast<std::size_t>(at));
  };
  EXPECT_NE(text_after("simplify").find(" = matmul "), std::string::npos) << text_after("simplify");
  EXPECT_NE(text_after("placement").find(": view of n"), std::string::npos) << text_after("placement");
  EXPECT_NE(text_after("grouping").find("  group 0 over ("), std::string::npos) << text_after("grouping");
  EXPECT_EQ(text_after("emit").find("plan for "), 0U) << text_after("emit");
}

}  // namespace
}  // namespace caldera::testing
