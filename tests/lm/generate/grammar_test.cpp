// Texts that are drawn at random from what a grammar allows, and what a plain validator says of them.
#include "lm/generate/grammar/grammar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "engine/base/error.h"

namespace caldera {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t kEnd = 256;

// Single bytes, an end, and pieces of texts such as vocabularies have: within characters and across pieces of
// JSON.
const std::vector<std::string>& token_bytes() {
  static const std::vector<std::string> kTokens = [] {
    std::vector<std::string> result(257);
    for (int i = 0; i < 256; ++i) result[static_cast<std::size_t>(i)] = std::string(1, static_cast<char>(i));
    for (const char* piece : {"{\"",
                              "\":",
                              "\": ",
                              "\",",
                              "\", \"",
                              "\"}",
                              "}}",
                              "]}",
                              "[[",
                              "{}",
                              "[]",
                              " {",
                              "true",
                              "fal",
                              "se",
                              "null",
                              "name",
                              "a",
                              "ab",
                              "abc",
                              "12",
                              "0.",
                              "-1",
                              "e+",
                              "\\u",
                              "\\ud83d",
                              "\\n",
                              "\xC3\xA9",
                              "\xC3",
                              "\xE6\x97",
                              "\xA5\xE6\x9C\xAC",
                              "\n  ",
                              "\n",
                              "  ",
                              " ",
                              "kind",
                              "\"kind\"",
                              "next",
                              "x\"",
                              "2024-",
                              "@",
                              "01",
                              "T12:"})
      result.emplace_back(piece);
    return result;
  }();
  return kTokens;
}

const GrammarVocabulary& vocabulary() {
  static const GrammarVocabulary kVocabulary(token_bytes(), {kEnd});
  return kVocabulary;
}

// Draws a text; after a while what ends things is preferred.
std::string draw_text(const Grammar& grammar, std::mt19937& random, int patience) {
  const std::unique_ptr<TokenConstraint> constraint = grammar.constraint();
  std::string text;
  for (int step = 0; step < 20000; ++step) {
    const TokenSet allowed = constraint->allowed();
    std::vector<std::int32_t> ids;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(token_bytes().size()); ++id)
      if (contains(allowed, id)) ids.push_back(id);
    std::int32_t id = ids[random() % ids.size()];
    if (step > patience) {
      for (const std::int32_t end : {kEnd, '"' + 0, '}' + 0, ']' + 0})
        if (contains(allowed, end) && random() % 8 != 0) {
          id = end;
          break;
        }
    }
    constraint->accept(id);
    if (id == kEnd) return text;
    text += token_bytes()[static_cast<std::size_t>(id)];
  }
  ADD_FAILURE() << "no end: " << text.substr(0, 300);
  return text;
}

std::size_t length_of(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

// A validator as plain as the standard reads, for the keywords of these tests.
bool is_valid(const Json& root, const Json& schema, const Json& value);

bool has_type(const std::string& type, const Json& value) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number() && value.get<double>() == std::floor(value.get<double>());
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  return type == "array" ? value.is_array() : value.is_object();
}

bool is_valid_object(const Json& root, const Json& schema, const Json& value) {
  for (const Json& name : schema.value("required", Json::array()))
    if (!value.contains(name.get<std::string>())) return false;
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, entry] : value.items()) {
    if (properties.contains(name)) {
      if (!is_valid(root, properties[name], entry)) return false;
    } else if (schema.contains("additionalProperties") &&
               !is_valid(root, schema["additionalProperties"], entry)) {
      return false;
    }
  }
  return true;
}

bool is_valid_array(const Json& root, const Json& schema, const Json& value) {
  if (value.size() < schema.value("minItems", std::size_t{0})) return false;
  if (value.size() > schema.value("maxItems", std::size_t{1} << 40)) return false;
  const Json prefix = schema.value("prefixItems", Json::array());
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i < prefix.size()) {
      if (!is_valid(root, prefix[i], value[i])) return false;
    } else if (schema.contains("items") && !is_valid(root, schema["items"], value[i])) {
      return false;
    }
  }
  return true;
}

bool is_valid_scalar(const Json& schema, const Json& value) {
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    if (length_of(text) < schema.value("minLength", std::size_t{0})) return false;
    if (length_of(text) > schema.value("maxLength", std::size_t{1} << 40)) return false;
    if (schema.contains("pattern") &&
        !std::regex_search(text, std::regex(schema["pattern"].get<std::string>())))
      return false;
  }
  if (!value.is_number()) return true;
  const auto number = value.get<double>();
  return number >= schema.value("minimum", -1e300) && number <= schema.value("maximum", 1e300) &&
         number > schema.value("exclusiveMinimum", -1e300) &&
         number < schema.value("exclusiveMaximum", 1e300);
}

bool is_valid(const Json& root, const Json& schema, const Json& value) {
  if (schema.is_boolean()) return schema.get<bool>();
  if (schema.contains("$ref") &&
      !is_valid(root, root.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1))), value))
    return false;
  if (schema.contains("type")) {
    Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    if (schema.value("nullable", false)) types.push_back("null");
    if (std::none_of(types.begin(), types.end(),
                     [&](const Json& t) { return has_type(t.get<std::string>(), value); }))
      return false;
  }
  if (schema.contains("const") && schema["const"] != value) return false;
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return false;
  const auto valid_for = [&](const char* keyword) {
    return std::count_if(schema[keyword].begin(), schema[keyword].end(),
                         [&](const Json& part) { return is_valid(root, part, value); });
  };
  if (schema.contains("anyOf") && valid_for("anyOf") == 0) return false;
  if (schema.contains("oneOf") && valid_for("oneOf") != 1) return false;
  if (schema.contains("allOf") && valid_for("allOf") != static_cast<std::ptrdiff_t>(schema["allOf"].size()))
    return false;
  if (value.is_object()) return is_valid_object(root, schema, value);
  if (value.is_array()) return is_valid_array(root, schema, value);
  return is_valid_scalar(schema, value);
}

const std::vector<const char*> kSchemas{
    R"({})",
    R"({"type":"object"})",
    R"({"type":"string"})",
    R"({"type":["integer","null"]})",
    R"({"type":"number"})",
    R"({"type":"string","minLength":2,"maxLength":5})",
    R"({"type":"string","minLength":3})",
    R"({"type":"string","pattern":"^[a-c]+-\\d{2,4}(x|y)?$"})",
    R"x({"type":"string","pattern":"^(?:ab[xyz]c|q)"})x",
    R"({"type":"string","pattern":"^(?:\\w|[^a-z\"\\\\])*$","minLength":1,"maxLength":9})",
    R"({"type":"integer","minimum":-17,"maximum":1234})",
    R"({"type":"integer","exclusiveMinimum":99})",
    R"({"type":"integer","maximum":-5})",
    R"({"type":"number","minimum":0,"maximum":1})",
    R"({"type":"number","exclusiveMinimum":-3,"exclusiveMaximum":120})",
    R"({"type":"number","minimum":7,"maximum":7})",
    R"({"enum":["red","gr\u00fcn",3,null,{"a":[1,2]},1.5]})",
    R"({"const":{"a":"quote\" and \\"}})",
    R"({"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":4})",
    R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"minItems":1})",
    R"({"type":"array","items":false})",
    R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0}},
        "required":["name"],"additionalProperties":false})",
    R"({"type":"object","properties":{"a":{},"ab":{"type":"null"}},"required":["c"],
        "additionalProperties":{"type":"integer"}})",
    R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}}})",
    R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":3}]})",
    R"({"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind","x"]},
        {"type":"object","properties":{"kind":{"const":"b"},"y":{"type":"string"}},"required":["kind"]}]})",
    R"({"allOf":[{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]},
        {"properties":{"a":{"minimum":3},"b":{"type":"boolean"}}}]})",
    R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"value":{"type":"integer"},
        "next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["value","next"],
        "additionalProperties":false}}})",
    R"({"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}}},"required":["children"]})",
    R"({"$ref":"#/definitions/n","maximum":9,"definitions":{"n":{"type":"integer","minimum":3}}})",
    R"({"type":"string","nullable":true,"title":"T","description":"D","default":"x"})",
    R"({"type":"object","properties":{"when":{"type":"string","format":"date-time"},"id":{"format":"uuid","type":"string"},
        "mail":{"type":"string","format":"email"},"ip":{"type":"string","format":"ipv4"}},"required":["when","id","mail","ip"]})",
};

TEST(Grammar, TextsAreValid) {
  std::mt19937 random(7);
  const char* samples = std::getenv("CALDERA_GRAMMAR_SAMPLES");  // for a validator outside
  std::ofstream file(samples != nullptr ? samples : "/dev/null");
  const int texts = samples != nullptr ? 300 : 12;
  for (const char* source : kSchemas) {
    const Json schema = Json::parse(source);
    const Grammar grammar = Grammar::json_schema(source, vocabulary());
    for (int i = 0; i < texts; ++i) {
      const std::string text = draw_text(grammar, random, i % 2 == 0 ? 30 : 120);
      const Json value = Json::parse(text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << source << "\n" << text;
      ASSERT_TRUE(is_valid(schema, schema, value)) << source << "\n" << text;
      file << Json{{"schema", schema}, {"text", text}}.dump() << "\n";
    }
  }
}

// What is allowed is not less than what is meant: these texts can be written, byte by byte.
bool takes(const Grammar& grammar, const std::string& text) {
  const std::unique_ptr<TokenConstraint> constraint = grammar.constraint();
  for (const char c : text) {
    const std::int32_t id = static_cast<unsigned char>(c);
    if (!contains(constraint->allowed(), id)) return false;
    constraint->accept(id);
  }
  return contains(constraint->allowed(), kEnd);
}

TEST(Grammar, TakesWhatIsMeant) {
  const auto of = [](const char* schema) { return Grammar::json_schema(schema, vocabulary()); };
  const Grammar any = of("{}");
  for (const char* text : {"null", "-0.5e-7", "\"\\ud83d\\ude00 \xF0\x9F\x98\x80\"", "[1, [2], {}]",
                           "{\"a\": {\"b\": [true]},\n  \"c\": 0}"})
    EXPECT_TRUE(takes(any, text)) << text;
  for (const char* text : {"", "01", "1.", "\"\\ud83d\"", "\"\xC3\"", "\"\xED\xA0\x80\"", "[1,]", "{\"a\"}",
                           "\"\n\"", "nul", "[1"})
    EXPECT_FALSE(takes(any, text)) << text;
  const Grammar number = of(R"({"type":"number","minimum":-2,"exclusiveMaximum":10})");
  for (const char* text : {"-2", "-1.999", "0", "9.99", "0.5", "-0.5", "-2.0"})
    EXPECT_TRUE(takes(number, text)) << text;
  for (const char* text : {"-2.1", "10", "10.0", "-3", "100"}) EXPECT_FALSE(takes(number, text)) << text;
  const Grammar integer = of(R"({"type":"integer","minimum":-105,"maximum":2300})");
  for (int i = -3000; i < 3000; ++i)
    EXPECT_EQ(takes(integer, std::to_string(i)), i >= -105 && i <= 2300) << i;
  const Grammar keys =
      of(R"({"properties":{"ab":{"type":"null"}},"additionalProperties":{"type":"integer"}})");
  for (const char* text : {"{}", "{\"a\":1}", "{\"ab\":null,\"abc\":2}", "{\"b\":1}", "{\"\":1}"})
    EXPECT_TRUE(takes(keys, text)) << text;
  EXPECT_FALSE(takes(keys, "{\"ab\":1}"));
  const Grammar part = of(R"({"type":"string","pattern":"ab.c|^q|z$"})");
  for (const char* text : {"\"xxab\\\"cyy\"", "\"q\"", "\"qq\"", "\"yz\"",
                           "\"ab\xC3\xA9"
                           "c\""})
    EXPECT_TRUE(takes(part, text)) << text;
  for (const char* text : {"\"abc\"", "\"xq\"", "\"zy\"", "\"ab\\nc\""})
    EXPECT_FALSE(takes(part, text)) << text;
  const Grammar object = Grammar::json_object(vocabulary());
  EXPECT_TRUE(takes(object, "{\"a\": [1]}"));
  EXPECT_FALSE(takes(object, "[1]"));
}

TEST(Grammar, NestsNoDeeperThanReadersDo) {
  const Grammar any = Grammar::json_schema("{}", vocabulary());
  EXPECT_TRUE(takes(any, std::string(50, '[') + std::string(50, ']')));
  EXPECT_FALSE(takes(any, std::string(1000, '[') + std::string(1000, ']')));
}

TEST(Grammar, RefusesByName) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {R"({"type":"object","patternProperties":{}})", "'patternProperties' is not supported (at #)"},
      {R"({"properties":{"a":{"not":{}}}})", "'not' is not supported (at #/properties/a)"},
      {R"({"type":"array","uniqueItems":true})", "'uniqueItems' is not supported"},
      {R"({"type":"number","multipleOf":2})", "'multipleOf' is not supported"},
      {R"({"type":"thing"})", "'type' must be"},
      {R"x({"type":"string","pattern":"(a)\\1"})x", "the escape \\1"},
      {R"x({"type":"string","pattern":"(?=a)"})x", "a look-around"},
      {R"({"type":"string","format":"colour"})", "the format 'colour' is not supported"},
      {R"({"$ref":"#/$defs/x"})", "which is not there"},
      {R"({"$ref":"http://example.org"})", "must refer to this document"},
      {R"({"$ref":"#"})", "itself"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "'oneOf'"},
      {R"({"type":"string","enum":[1]})", "nothing matches"},
      {R"({"type":"object","properties":{"next":{"$ref":"#"}},"required":["next"]})",
       "nothing of finite length"},
      {R"({"type":"string","maxLength":100000000})", "states"},
      {R"({"minimum":0.5})", "'minimum' must be a whole number"},
      {"[", "not JSON"}};
  for (const auto& [schema, message] : cases) {
    try {
      Grammar::json_schema(schema, vocabulary());
      ADD_FAILURE() << schema << " was taken";
    } catch (const ValueError& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << schema << ": " << error.what();
    }
  }
}

TEST(Grammar, FollowsPartsAndClones) {
  using Kind = GrammarPart::Kind;
  const Grammar calls({{{Kind::text, "<call>{\"name\": \"add\", \"arguments\": "},
                        {Kind::json_schema, R"({"properties":{"a":{"type":"integer"}},"required":["a"]})"},
                        {Kind::text, "}</call>"}},
                       {{Kind::text, "<call>none</call>"}}},
                      vocabulary());
  EXPECT_TRUE(takes(calls, "<call>none</call>"));
  EXPECT_TRUE(takes(calls, "<call>{\"name\": \"add\", \"arguments\": {\"a\": 3}}</call>"));
  EXPECT_FALSE(takes(calls, "<call>{\"name\": \"add\", \"arguments\": {}}</call>"));

  const Grammar digit = Grammar::json_schema(R"({"enum":[1,23]})", vocabulary());
  const std::unique_ptr<TokenConstraint> first = digit.constraint();
  first->accept('2');
  const std::unique_ptr<TokenConstraint> second = first->clone();
  second->accept('3');
  EXPECT_TRUE(contains(second->allowed(), kEnd));
  EXPECT_FALSE(contains(first->allowed(), kEnd));
  EXPECT_THROW(first->accept('4'), ValueError);
  first->accept('3');
  first->accept(kEnd);
  EXPECT_TRUE(contains(first->allowed(), kEnd));
  EXPECT_THROW(first->accept('3'), ValueError);
}

}  // namespace
}  // namespace caldera
