// Spans of what the assistant says.
#include <gtest/gtest.h>

#include <thread>

#include "tests/lm/chat/render_helper.h"

namespace caldera {
namespace {

using nlohmann::ordered_json;

/// The texts of the spans, in order.
std::vector<std::string> generated(const std::string& source,
                                   const ordered_json& variables = ordered_json::object()) {
  const RenderedChat rendered = testing::render(source, variables);
  std::vector<std::string> parts;
  std::size_t end = 0;
  for (const ChatSpan& span : rendered.generation) {
    EXPECT_GE(span.begin, end) << "spans are in order and apart";
    EXPECT_LE(span.begin, span.end);
    EXPECT_LE(span.end, rendered.text.size());
    end = span.end;
    parts.push_back(rendered.text.substr(span.begin, span.end - span.begin));
  }
  return parts;
}

using Parts = std::vector<std::string>;

TEST(ChatTemplateGeneration, CountsBytesAndCodePoints) {
  const RenderedChat rendered =
      testing::render("é{% generation %}ü👋{% endgeneration %}!{% generation %}{% endgeneration %}");
  EXPECT_EQ(rendered.text, "éü👋!");
  EXPECT_EQ(rendered.generation, (std::vector<ChatSpan>{{2, 8, 1, 3}, {9, 9, 4, 4}}));
}

TEST(ChatTemplateGeneration, FollowsStatementsInside) {
  EXPECT_EQ(generated("a{% generation %}{% for i in range(3) %}{% if i != 1 %}{{ i }}{% endif %}{% endfor "
                      "%}{% endgeneration %}b"),
            Parts{"02"});
  EXPECT_EQ(generated("{% for m in l %}[{% if m.a %}{% generation %}{{ m.t }}{% endgeneration %}{% else %}{{ "
                      "m.t }}{% endif %}]{% endfor %}",
                      ordered_json::parse(R"({"l": [{"t": "q"}, {"t": "x", "a": 1}, {"t": "yy", "a": 1}]})")),
            (Parts{"x", "yy"}));
}

TEST(ChatTemplateGeneration, FollowsWhitespaceControl) {
  EXPECT_EQ(generated("a \n {%- generation -%} \n b \n {%- endgeneration -%} \n c"), Parts{"b"});
  EXPECT_EQ(generated("a\n  {% generation %}\n  b\n  {% endgeneration %}\nc"), Parts{"  b\n"});
  EXPECT_EQ(generated("a {%+ generation +%}\nb{% endgeneration %}"), Parts{"\nb"});
}

// A block in a block is part of it.
TEST(ChatTemplateGeneration, CountsTheOuterBlockAlone) {
  EXPECT_EQ(generated("{% generation %}a{% generation %}b{% endgeneration %}c{% endgeneration %}"),
            Parts{"abc"});
  EXPECT_EQ(generated("{% generation %}{% endgeneration %}{% generation %}b{% endgeneration %}"),
            (Parts{"", "b"}));
}

// Where a block's text is captured first, it counts where it is printed.
TEST(ChatTemplateGeneration, FollowsCapturedText) {
  EXPECT_EQ(generated("{% macro say(t) %}<{% generation %}{{ t }}{% endgeneration %}>{% endmacro %}a{{ "
                      "say('x') }}b{{ say('yy') }}"),
            (Parts{"x", "yy"}));
  EXPECT_EQ(generated("{% set s %}é{% generation %}x{% endgeneration %}z{% endset %}a{{ s }}b{{ s }}"),
            (Parts{"x", "x"}));
  EXPECT_EQ(generated("{% set s %}{% generation %}x{% endgeneration %}{% endset %}"), Parts{});
  EXPECT_EQ(generated("{% set s %}{% generation %}x{% endgeneration %}{% endset %}{{ 'é' ~ s ~ '!' + s }}"),
            (Parts{"x", "x"}));
  EXPECT_EQ(
      generated(
          "{% set s %}  {% generation %} x {% endgeneration %} {% endset %}{{ s | trim }}{{ s.strip() }}"),
      (Parts{"x", "x"}));
  EXPECT_EQ(generated("{% macro m() %}({{ caller() }}){% endmacro %}{% call m() %}{% generation %}x{% "
                      "endgeneration %}{% endcall %}"),
            Parts{"x"});
  EXPECT_EQ(generated("{% for i in [[1], 2] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{% "
                      "generation %}{{ i }}"
                      "{% endgeneration %}{% endif %}{% endfor %}"),
            (Parts{"1", "2"}));
}

// A template is rendered by many threads at once.
TEST(ChatTemplateGeneration, IsTheSameOnEveryThread) {
  const ChatTemplate chat(
      "{% macro m(x) %}{{ x|upper ~ 'a' }}{% endmacro %}{% for i in range(200) %}{{ m('é') }}{% generation "
      "%}{{ i }}"
      "{% endgeneration %}{% endfor %}");
  const RenderedChat expected = chat.render({});
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (std::size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const RenderedChat rendered = chat.render({});
        same[t] +=
            static_cast<int>(rendered.text == expected.text && rendered.generation == expected.generation);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, std::vector<int>(4, 20));
}

}  // namespace
}  // namespace caldera
