// Integers that 64 bits do not hold: Python's have no end.
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/base/json_integers.h"
#include "tests/lm/chat/render_helper.h"

namespace caldera::testing {
namespace {

std::string rendered(const std::string& source, const char* variables) {
  return render(source, detail::parse_ordered_json(variables, "variables")).text;
}

TEST(LargeIntegers, AreWrittenAsPythonWritesThem) {
  constexpr const char* kVariables = R"({
    "a": 9223372036854775808, "b": 18446744073709551616, "c": -123456789012345678901234567890,
    "d": {"id": 98765432109876543210, "small": 9223372036854775807, "least": -9223372036854775808}, "e": 1e22,
    "f": 18446744073709551616})";
  EXPECT_EQ(rendered("{{ a }} {{ b }} {{ c }} {{ e }}", kVariables),
            "9223372036854775808 18446744073709551616 -123456789012345678901234567890 1e+22");
  EXPECT_EQ(rendered("{{ d }}", kVariables),
            "{'id': 98765432109876543210, 'small': 9223372036854775807, 'least': -9223372036854775808}");
  EXPECT_EQ(rendered("{{ [c, d.id]|tojson }}", kVariables),
            "[-123456789012345678901234567890, 98765432109876543210]");
  EXPECT_EQ(rendered("{{ d.id|string|length }} {{ 'id ' ~ d.id }} {{ '%s' % b }}", kVariables),
            "20 id 98765432109876543210 18446744073709551616");
  EXPECT_EQ(rendered("{{ b == f }} {{ b == a }} {{ b is integer }} {{ b is number }} {{ b is string }} "
                     "{{ b is float }} {{ 'yes' if c else 'no' }}",
                     kVariables),
            "True False True True False False yes");
  EXPECT_EQ(rendered("{{ {b: 1}[f] }}", kVariables), "1");
}

TEST(LargeIntegers, AreNotComputedWith) {
  EXPECT_THROW(rendered("{{ b + 1 }}", R"({"b": 18446744073709551616})"), Error);
}

/// What is no such integer is as the library has it.
TEST(LargeIntegers, TheRestIsPlainJson) {
  for (const char* text :
       {R"({"a": [1, -2, 3.5, 1e300, "x\u00e9", true, null, {}, [], {"b": {"c": [[], [{}]]}}], "z": -0.0})",
        "[]", "17", R"("x")", "null", R"([[[1], {"a": 1, "b": [2]}], 18446744073709551615])",
        R"({"a": 1, "a": [2]})"})
    EXPECT_EQ(detail::parse_whole_integers(text), nlohmann::ordered_json::parse(text)) << text;
  for (const char* text : {"", "{", "[1,]", "nul", "1e999", R"({"a" 1})", "\"\xff\"", "[1] 2"}) {
    EXPECT_THROW(detail::parse_whole_integers(text), nlohmann::ordered_json::exception) << text;
    EXPECT_THROW(detail::parse_ordered_json(text, "here"), FileError) << text;
  }
}

}  // namespace
}  // namespace caldera::testing
