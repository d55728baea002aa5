// Templates with random changes: whatever they have become, they are rendered or refused, and soon.
//
// CALDERA_CHAT_FUZZ=1000000 tries that many in place of the usual number.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>

#include "tests/lm/chat/render_helper.h"
#include "tests/support/test_data.h"

namespace caldera {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kUsual = 20'000;

std::vector<std::string> seeds(const ordered_json& cases) {
  std::vector<std::string> texts;
  for (const auto& test : cases) texts.push_back(test[0].get<std::string>());
  if (const auto folder = testing::test_data("chat_templates")) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
      if (entry.path().extension() == ".jinja") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& path : files) {
      std::ifstream file(path, std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(file), {});
      for (int i = 0; i < 20; ++i) texts.push_back(text);
    }
  }
  return texts;
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& from, std::uint64_t seed) : seeds_(from), random_(seed) {}

  std::string next() {
    std::string text = seeds_[below(seeds_.size())];
    const std::size_t changes = 1 + below(6);
    for (std::size_t i = 0; i < changes; ++i) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  void change(std::string& text) {
    static const std::vector<std::string> pieces = {"{{",
                                                    "}}",
                                                    "{%",
                                                    "%}",
                                                    "{%-",
                                                    "-%}",
                                                    "{#",
                                                    "#}",
                                                    "|",
                                                    "(",
                                                    ")",
                                                    "[",
                                                    "]",
                                                    "{",
                                                    "}",
                                                    "'",
                                                    "\"",
                                                    "\\",
                                                    "**",
                                                    "*",
                                                    "//",
                                                    "%",
                                                    "~",
                                                    ":",
                                                    ",",
                                                    ".",
                                                    "=",
                                                    "==",
                                                    "<",
                                                    "-",
                                                    " if ",
                                                    " else ",
                                                    " for ",
                                                    " in ",
                                                    " is ",
                                                    " not ",
                                                    " and ",
                                                    "none",
                                                    "true",
                                                    "loop",
                                                    "messages",
                                                    "0",
                                                    "-1",
                                                    "1e308",
                                                    "9223372036854775807",
                                                    "10**9",
                                                    "\xff",
                                                    "é",
                                                    "\n",
                                                    "|tojson",
                                                    "|list",
                                                    "|map('upper')",
                                                    "|sort",
                                                    "|join",
                                                    "|length",
                                                    "|batch(3)",
                                                    "|int",
                                                    "*10**8",
                                                    "[::-1]",
                                                    "{% if x %}",
                                                    "{% endif %}",
                                                    "{% for a in messages %}",
                                                    "{% endfor %}",
                                                    "{% set x = messages %}",
                                                    "{% macro m(a) %}",
                                                    "{% endmacro %}",
                                                    "{{ m(m) }}",
                                                    "{% generation %}",
                                                    "{% endgeneration %}",
                                                    "{% set ns = namespace(a=1) %}",
                                                    "{% set ns.a = [ns.a] %}",
                                                    "{% break %}",
                                                    "{% raw %}",
                                                    "{% call m(1) %}",
                                                    "{% endcall %}",
                                                    ".items()",
                                                    ".split(',')",
                                                    ".format(1)",
                                                    " % 1",
                                                    "range(1000)",
                                                    "recursive",
                                                    "loop(messages)",
                                                    "caller()",
                                                    "{% filter upper %}",
                                                    "{% endfilter %}"};
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(text.size() - at, 40) + 1);
    switch (below(7)) {
      case 0:
        text.insert(at, pieces[below(pieces.size())]);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.replace(at, length, pieces[below(pieces.size())]);
        break;
      case 3:
        text.insert(below(text.size() + 1), text.substr(at, length));
        break;
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        break;
      case 5: {
        const std::string& other = seeds_[below(seeds_.size())];
        const std::size_t from = below(other.size() + 1);
        text.insert(at, other.substr(from, below(200)));
        break;
      }
      default:
        text = text.substr(0, at) + text.substr(std::min(text.size(), at + length));
        break;
    }
  }

  const std::vector<std::string>& seeds_;
  std::mt19937_64 random_;
};

TEST(ChatTemplateFuzz, NeitherCrashesNorHangs) {
  std::ifstream file("tests/lm/chat/python_cases.json");
  ASSERT_TRUE(file) << "run from the repository's root";
  const auto data = ordered_json::parse(file);
  const std::vector<std::string> from = seeds(data["cases"]);
  const char* asked = std::getenv("CALDERA_CHAT_FUZZ");
  const std::size_t count = asked != nullptr ? std::strtoull(asked, nullptr, 10) : kUsual;
  ChatTemplateLimits limits;
  limits.max_steps = 20'000;
  limits.max_memory_bytes = 4 << 20;
  limits.max_output_bytes = 1 << 20;
  ChatTemplateInput input = testing::input_with(data["variables"]);
  input.messages = ordered_json::parse(R"([{"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Hi é"}]},
    {"role": "assistant", "content": "a", "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}]},
    {"role": "tool", "content": "5"}])");
  input.tools = ordered_json::parse(
      R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}])");
  input.bos_token = "<s>";
  Mutator mutator(from, 7);
  std::size_t rendered = 0;
  double slowest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string source = mutator.next();
    const auto begin = std::chrono::steady_clock::now();
    try {
      const ChatTemplate chat(source, limits);
      rendered += static_cast<std::size_t>(!chat.render(input).text.empty());
    } catch (const ChatTemplateError&) {
      // Refused: as good as rendered.
    } catch (const std::exception& error) {
      FAIL() << "mutant " << i << ": " << error.what() << "\n" << source;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    slowest = std::max(slowest, took.count());
    ASSERT_LT(took.count(), 10) << "mutant " << i << "\n" << source;
  }
  EXPECT_GT(rendered, count / 10) << "most mutants should still mean something";
  RecordProperty("slowest_ms", static_cast<int>(slowest * 1000));
}

}  // namespace
}  // namespace caldera
