// What goes wrong in templates: where it is said to be, and that no template can use more than its limits.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/lm/chat/render_helper.h"

namespace caldera {
namespace {

using nlohmann::ordered_json;
using testing::render;

struct Place {
  std::size_t line;
  std::size_t column;
  bool operator==(const Place&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.line << ":" << place.column;
}

Place place_of_error(const std::string& source) {
  try {
    render(source);
  } catch (const ChatTemplateError& error) {
    return {error.line(), error.column()};
  }
  return {0, 0};
}

TEST(ChatTemplateErrors, SayLineAndColumn) {
  EXPECT_EQ(place_of_error("a\n{{ 1 + }}"), (Place{2, 8}));
  EXPECT_EQ(place_of_error("ab {% nope %}"), (Place{1, 7}));
  EXPECT_EQ(place_of_error("é👋{{ ! }}"), (Place{1, 6}));
  EXPECT_EQ(place_of_error("\n\n  {% if x %}"), (Place{3, 13}));
  EXPECT_EQ(place_of_error("a\r\nb\r{{ 'x' + 1 }}"), (Place{3, 4}));
  EXPECT_EQ(place_of_error("{% set a = 1 %}\n{{ a.b.c }}"), (Place{2, 7}));
  EXPECT_EQ(place_of_error("{% macro m() %}\n{{ none + 1 }}{% endmacro %}\n{{ m() }}"), (Place{2, 4}));
  EXPECT_EQ(place_of_error("x {# y"), (Place{1, 3}));
  EXPECT_EQ(place_of_error("{{ 'a' | nope }}"), (Place{1, 10}));
}

TEST(ChatTemplateErrors, TellRefusalsFromFaults) {
  try {
    render("{% if true %}\n{{ raise_exception('No: ' ~ 1) }}{% endif %}");
    FAIL();
  } catch (const ChatTemplateRefusal& refusal) {
    EXPECT_EQ(refusal.message(), "No: 1");
    EXPECT_EQ(refusal.line(), 2U);
    EXPECT_NE(std::string(refusal.what()).find("No: 1"), std::string::npos);
  }
  try {
    render("{{ 1 / 0 }}");
    FAIL();
  } catch (const ChatTemplateRefusal&) {
    FAIL() << "the template did not refuse";
  } catch (const ChatTemplateError& error) {
    EXPECT_EQ(error.message(), "division by zero");
  }
}

TEST(ChatTemplateErrors, RefuseOtherTemplates) {
  for (const char* source :
       {"{% include 'a' %}", "{% extends 'a' %}", "{% import 'a' as b %}", "{% from 'a' import b %}"}) {
    try {
      render(source);
      FAIL() << source;
    } catch (const ChatTemplateError& error) {
      EXPECT_NE(error.message().find("cannot"), std::string::npos) << error.what();
    }
  }
}

TEST(ChatTemplateErrors, KeepKeysInOrder) {
  EXPECT_EQ(
      render("{{ d | tojson }}{{ d | list }}", {{"d", ordered_json::parse(R"({"z":1,"a":{"y":2,"b":3}})")}})
          .text,
      R"({"z": 1, "a": {"y": 2, "b": 3}}['z', 'a'])");
}

TEST(ChatTemplateErrors, RefuseComputingIntegersBeyond64Bits) {
  EXPECT_THROW(render("{{ 9223372036854775807 + 1 }}"), ChatTemplateError);
  EXPECT_THROW(render("{{ 9223372036854775808 }}"), ChatTemplateError);
  EXPECT_EQ(render("{{ -9223372036854775807 - 1 }}").text, "-9223372036854775808");
  EXPECT_THROW(render("{{ (-9223372036854775807 - 1) // -1 }}"), ChatTemplateError);
  EXPECT_THROW(render("{{ -(-9223372036854775807 - 1) }}"), ChatTemplateError);
  EXPECT_THROW(render("{{ 10 ** 19 }}"), ChatTemplateError);
}

/// `count` times a text.
std::string times(std::size_t count, const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

// Whatever the template, it ends soon, and in an error or in a text.
TEST(ChatTemplateLimits, HoldForHostileTemplates) {
  ChatTemplateLimits limits;
  limits.max_steps = 2'000'000;
  limits.max_memory_bytes = 64 << 20;
  limits.max_output_bytes = 4 << 20;
  const std::string grow = "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}";
  const std::string end = "{% endfor %}{{ ns.x }}";
  const std::vector<std::string> hostile = {
      "{{ 'a' * 10**9 }}",
      "{{ 'a' * 10**18 }}",
      "{{ [0] * 10**12 }}",
      "{{ range(10**12) }}",
      "{{ range(-9223372036854775807, 9223372036854775807) }}",
      "{{ ('a' * 10**7) * 100 }}",
      times(12, "{% for a in range(100000) %}") + "x" + times(12, "{% endfor %}"),
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{% for a in range(100000) %}" + std::string(1000, 'x') + "{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro a(n) %}{% if n %}{{ a(n-1) }}{{ a(n-1) }}{% endif %}{% endmacro %}{{ a(100) }}",
      "{% macro m(x=m()) %}{% endmacro %}{{ m() }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      "{{ '%1000000000s' % 'x' }}",
      "{{ '%.1000000000f' % 1.0 }}",
      "{{ '%*d' % (10**18, 1) }}",
      "{{ '{:1000000000}'.format(1) }}",
      "{{ '{:.999999999f}'.format(1.5) }}",
      "{{ '{:0999999999,}'.format(1) }}",
      "{{ 'x'.center(10**15) }}{{ 'x'.zfill(10**15) }}",
      "{{ 'x' | center(10**15) }}",
      "{{ 'a\nb' | indent(10**15) }}",
      "{{ [[[1]]] | tojson(indent=10**15) }}",
      "{{ '\t'.expandtabs(10**15) }}",
      "{{ ('ab' * 1000000).replace('a', 'x' * 100000) }}",
      "{{ ('a' * 3000000).find('a' * 1500000 ~ 'b') }}",
      "{{ ('a' * 3000000).rfind('b' ~ 'a' * 1500000) }}",
      "{{ ('a' * 3000000).count('a' * 1500000 ~ 'b') }}",
      "{{ ('a' * 1500000 ~ 'b') in 'a' * 3000000 }}",
      "{{ 'x' * 1000000 | slice(10**15) | list }}",
      "{{ [1] | slice(10**15) | list }}",
      "{{ [1] | batch(10**15, 0) | list }}",
      "{{ '<' * 4000000 | striptags }}",
      "{{ ('<' * 4000000) | striptags }}",
      "{{ ('a ' * 1000000) | wordwrap(1) }}",
      "{{ ('a' * 3000000) | wordwrap(1) }}",
      "{{ ('a\n' * 1000000) | indent(100) }}",
      "{{ ('a' * 1000000) | list | join(',') | list | length }}",
      "{{ strftime_now('%c' * 1000000) }}",
      grow + "{% set ns.x = [ns.x] %}" + end,
      grow + "{% set ns.x = [ns.x, ns.x] %}" + end,
      grow + "{% set ns.x = (ns.x,) %}" + end,
      grow + "{% set ns.x = {'a': ns.x} %}" + end,
      grow + "{% set ns.x = ns.x | map('upper') %}" + end,
      grow + "{% set ns.x = namespace(y=ns.x) %}" + end,
      grow + "{% set ns.x = [ns.x].index %}" + end,
      grow + "{% set ns.x = cycler(ns.x).next %}" + end,
      grow + "{% set ns.x = joiner(ns.x) %}" + end,
      grow + "{% set ns.x = [ns.x, loop] %}" + end,
      "{% set ns = namespace(x='a') %}{% for i in range(100000) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
      "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
      "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x == ns.x }}{{ ns }}{{ ns.x | tojson }}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
      "ns.x }}",
      "{% set ns = namespace(x=[1],y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y "
      "= [ns.y, ns.y] %}"
      "{% endfor %}{{ ns.x == ns.y }}",
      "{% set ns = namespace(x=(1,)) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ "
      "{ns.x: 1} }}",
      "{% for i in [1] %}{{ loop.changed(loop) }}{{ loop.changed([loop]) }}{{ loop.changed(loop.cycle) }}{% "
      "endfor %}",
      "{% macro m() %}{% set ns = namespace(f=m) %}{{ ns.f() }}{% endmacro %}{{ m() }}",
      "{% for i in range(100000) %}{% macro m() %}{{ i }}{% endmacro %}{% endfor %}",
      times(100000, "("),
      "{{ " + times(100000, "(") + "1" + times(100000, ")") + " }}",
      "{{ " + times(100000, "[") + times(100000, "]") + " }}",
      "{{ " + times(100000, "{1:") + "1" + times(100000, "}") + " }}",
      "{{ " + times(100000, "not ") + "1 }}",
      "{{ " + times(100000, "-") + "1 }}",
      "{{ 1" + times(100000, " + 1") + " }}",
      "{{ 1" + times(100000, " if 1 else 1") + " }}",
      "{{ x" + times(100000, ".a") + " }}",
      "{{ x" + times(100000, "[x") + times(100000, "]") + " }}",
      "{{ 'x'" + times(100000, "|upper") + " }}",
      "{{ 1" + times(100000, " is defined") + " }}",
      "{{ 1" + times(100000, " ~ 1") + " }}",
      "{{ 1" + times(100000, " == 1") + " }}",
      "{{ 1" + times(100000, " and 1") + " }}",
      times(100000, "{% if 1 %}"),
      times(20000, "{% if 1 %}") + times(20000, "{% endif %}"),
      "{% if 0 %}" + times(20000, "{% elif 0 %}") + "{% endif %}",
      times(20000, "{% for a in [1] %}") + times(20000, "{% endfor %}"),
      times(200000, "{% raw %}"),
      times(200000, "{#"),
      times(100000, "{{"),
      times(100000, "{% generation %}"),
      "{{ '" + times(100000, "\\N{") + "' }}",
  };
  for (const std::string& source : hostile) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      render(source, {}, limits);
    } catch (const ChatTemplateError&) {
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took.count(), 20) << source.substr(0, 100);
  }
}

// Legitimate conversations are far from the limits.
TEST(ChatTemplateLimits, LeaveRoomForLongConversations) {
  ordered_json messages = ordered_json::array();
  for (int i = 0; i < 2000; ++i)
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(2000, 'x')}});
  ChatTemplateInput input;
  input.messages = messages;
  const ChatTemplate chat(
      "{% set ns = namespace(text='') %}{% for m in messages %}{% set ns.text = ns.text ~ m.role %}"
      "<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content | trim }}{% endgeneration "
      "%}{% else %}"
      "{{ m.content }}{% endif %}{% endfor %}{{ ns.text | length }}");
  const RenderedChat rendered = chat.render(input);
  EXPECT_EQ(rendered.generation.size(), 1000U);
  EXPECT_TRUE(rendered.text.ends_with("13000"));
}

TEST(ChatTemplateLimits, AreNamed) {
  const auto message_of = [](const std::string& source, const ChatTemplateLimits& limits) -> std::string {
    try {
      render(source, {}, limits);
    } catch (const ChatTemplateError& error) {
      return error.what();
    }
    return "no error";
  };
  ChatTemplateLimits limits;
  limits.max_steps = 100;
  EXPECT_NE(message_of("{% for i in range(1000) %}{% endfor %}", limits).find("max_steps"),
            std::string::npos);
  limits = {};
  limits.max_memory_bytes = 100'000;
  EXPECT_NE(message_of("{{ 'a' * 1000000 }}", limits).find("max_memory_bytes"), std::string::npos);
  limits = {};
  limits.max_output_bytes = 10;
  EXPECT_NE(message_of("{{ 'a' * 11 }}", limits).find("max_output_bytes"), std::string::npos);
  limits = {};
  limits.max_source_bytes = 3;
  EXPECT_NE(message_of("aaaa", limits).find("max_source_bytes"), std::string::npos);
  limits = {};
  limits.max_depth = 5;
  EXPECT_NE(message_of("{{ ((((((1)))))) }}", limits).find("max_depth"), std::string::npos);
}

}  // namespace
}  // namespace caldera
