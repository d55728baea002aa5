// Small templates, one for each thing that templates can do, against what Python's Jinja2 renders for them.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/lm/chat/render_helper.h"
#include "tests/support/test_data.h"

namespace caldera {
namespace {

using nlohmann::ordered_json;

ordered_json spans_of(const RenderedChat& rendered) {
  ordered_json spans = ordered_json::array();
  for (const ChatSpan& span : rendered.generation) spans.push_back({span.first, span.last});
  return spans;
}

TEST(ChatTemplate, RendersWhatPythonRenders) {
  std::ifstream file("tests/lm/chat/python_cases.json");
  ASSERT_TRUE(file) << "run from the repository's root";
  const auto data = ordered_json::parse(file);
  std::size_t count = 0;
  for (const auto& test : data["cases"]) {
    const auto source = test[0].get<std::string>();
    ++count;
    try {
      const RenderedChat rendered = testing::render(source, data["variables"]);
      EXPECT_EQ(ordered_json(rendered.text), test[1]) << source;
      if (test.size() > 2) {
        EXPECT_EQ(spans_of(rendered), test[2]) << source;
      }
    } catch (const ChatTemplateError& error) {
      EXPECT_TRUE(test[1].is_null()) << source << "\n" << error.what();
    }
  }
  EXPECT_GT(count, 2000U);
}

// The templates of many models, each with thirteen conversations.
TEST(ChatTemplate, RendersModelsTemplates) {
  CALDERA_REQUIRE_DATA(folder, "chat_templates");
  std::ifstream file(folder / "golden.json");
  const auto golden = ordered_json::parse(file);
  std::size_t count = 0;
  for (const auto& [name, cases] : golden["renders"].items()) {
    std::ifstream text(folder / name, std::ios::binary);
    const ChatTemplate chat(std::string(std::istreambuf_iterator<char>(text), {}));
    for (const auto& [which, expected] : cases.items()) {
      SCOPED_TRACE(name + ", " + which);
      ++count;
      ChatTemplateInput input;
      ordered_json variables = golden["cases"][which];
      input.messages = variables["messages"];
      input.tools = variables.value("tools", ordered_json());
      input.add_generation_prompt = variables.value("add_generation_prompt", false);
      for (const char* known : {"messages", "tools", "add_generation_prompt"}) variables.erase(known);
      variables["pad_token"] = "<pad>";
      variables["unk_token"] = "<unk>";
      input.variables = variables;
      input.bos_token = "<s>";
      input.eos_token = "</s>";
      input.now = testing::kNoon;
      try {
        const RenderedChat rendered = chat.render(input);
        ASSERT_TRUE(expected.contains("text")) << "Python has an error: " << expected.dump();
        EXPECT_EQ(rendered.text, expected["text"].get<std::string>());
        EXPECT_EQ(spans_of(rendered), expected["spans"]);
      } catch (const ChatTemplateRefusal& refusal) {
        EXPECT_EQ(expected["error"], "TemplateError: " + refusal.message());
      } catch (const ChatTemplateError& error) {
        EXPECT_TRUE(expected.contains("error")) << error.what();
        EXPECT_FALSE(expected.value("error", "").starts_with("TemplateError")) << error.what();
      }
    }
  }
  EXPECT_GE(count, 351U);
}

}  // namespace
}  // namespace caldera
