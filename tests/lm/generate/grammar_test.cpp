// Texts that are drawn at random from what a grammar allows, and what a plain validator says of them.
#include "lm/generate/grammar/grammar.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "engine/base/error.h"
#include "tests/lm/generate/grammar_texts.h"

namespace caldera {
namespace {

using Json = nlohmann::ordered_json;

using testing::draw_text;
using testing::kEnd;
using testing::takes;
using testing::token_bytes;
using testing::vocabulary;

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
  const Json patterns = schema.value("patternProperties", Json::object());
  const Json dependent = schema.value("dependentRequired", Json::object());
  for (const auto& [name, entry] : value.items()) {
    bool spoken_of = properties.contains(name);
    if (spoken_of && !is_valid(root, properties[name], entry)) return false;
    for (const auto& [pattern, property] : patterns.items()) {
      if (!std::regex_search(name, std::regex(pattern))) continue;
      if (!is_valid(root, property, entry)) return false;
      spoken_of = true;
    }
    if (!spoken_of && schema.contains("additionalProperties") &&
        !is_valid(root, schema["additionalProperties"], entry))
      return false;
    if (schema.contains("propertyNames") && !is_valid(root, schema["propertyNames"], Json(name)))
      return false;
  }
  for (const auto& [name, others] : dependent.items())
    for (const Json& other : others)
      if (value.contains(name) && !value.contains(other.get<std::string>())) return false;
  return value.size() >= schema.value("minProperties", std::size_t{0}) &&
         value.size() <= schema.value("maxProperties", std::size_t{1} << 40);
}

bool is_valid_array(const Json& root, const Json& schema, const Json& value) {
  if (value.size() < schema.value("minItems", std::size_t{0})) return false;
  if (value.size() > schema.value("maxItems", std::size_t{1} << 40)) return false;
  for (std::size_t i = 0; i < value.size() && schema.value("uniqueItems", false); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (value[i] == value[k]) return false;
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
  if (schema.contains("multipleOf")) {
    const double quotient = number / schema["multipleOf"].get<double>();
    if (std::abs(quotient - std::round(quotient)) > 1e-9 * std::max(1.0, std::abs(quotient))) return false;
  }
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
  if (schema.contains("not") && is_valid(root, schema["not"], value)) return false;
  if (schema.contains("if")) {
    const char* then = is_valid(root, schema["if"], value) ? "then" : "else";
    if (schema.contains(then) && !is_valid(root, schema[then], value)) return false;
  }
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
    R"({"type":"array","items":{"enum":["a",1,1.0,null]},"uniqueItems":true,"minItems":2})",
    R"({"type":"array","items":{"type":"boolean"},"uniqueItems":true,"maxItems":1})",
    R"({"type":"array","items":{"$ref":"#/$defs/tag"},"uniqueItems":true,"minItems":1,"maxItems":4,"$defs":{"tag":
        {"enum":["a","b","c","d","e","f","g","h","i","j","k","l"],"type":"string"}}})",
    R"x({"type":"object","patternProperties":{"^S_":{"type":"string"},"_n$":{"minLength":2},"^[0-9]+$":{"type":"null"}},
        "properties":{"S_x":{},"a":{"type":"integer"}},"additionalProperties":{"type":"boolean"}})x",
    R"({"type":"object","patternProperties":{"^S_":{"type":"string"}},"required":["S_1","b"],"additionalProperties":false,
        "properties":{"b":{"type":"null"}},"minProperties":3})",
    R"({"type":"object","propertyNames":{"pattern":"^[a-f]+$","maxLength":3},"additionalProperties":{"type":"integer"}})",
    R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"minProperties":2})",
    R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"maxProperties":1,
        "additionalProperties":{"type":"null"}})",
    R"({"type":"object","minProperties":1,"maxProperties":3,"additionalProperties":{"type":"integer"}})",
    R"({"type":"integer","multipleOf":7})",
    R"({"type":"integer","multipleOf":6,"minimum":-50,"exclusiveMaximum":1000})",
    R"({"type":"number","multipleOf":0.25,"minimum":-2,"maximum":30})",
    R"({"type":"integer","multipleOf":2.5,"minimum":1})",
    R"({"type":"number","multipleOf":0.01})",
    R"({"type":"number","minimum":0.5,"maximum":12.75})",
    R"({"type":"number","exclusiveMinimum":-0.5,"exclusiveMaximum":0.25})",
    R"({"type":["string","null"],"not":{"enum":["ab","",null]},"maxLength":3})",
    R"({"type":"string","pattern":"^a+b?$","not":{"const":"aab"}})",
    R"({"type":"integer","minimum":1,"maximum":9,"not":{"enum":[1,5,9,12]}})",
    R"({"type":"number","minimum":0,"maximum":2,"not":{"const":1}})",
    R"({"not":{"type":["object","array","string"]}})",
    R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"not":{"required":["a","b"]}})",
    R"({"type":"object","properties":{"kind":{"enum":["x","y","z"]},"n":{"type":"integer"}},"required":["kind"],
        "if":{"properties":{"kind":{"const":"x"}}},"then":{"required":["n"]},"else":{"properties":{"n":{"minimum":7}}}})",
    R"({"type":"integer","if":{"maximum":10},"then":{"minimum":3},"else":{"multipleOf":5,"maximum":900}})",
    R"({"oneOf":[{"type":"integer","minimum":0,"maximum":20},{"type":"integer","minimum":10,"maximum":30}]})",
    R"({"oneOf":[{"type":"string"},{"enum":["a","b",3]}]})",
    R"({"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"null"},"b":{"type":"null"}}})",
    R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"dependentRequired":{"a":["b"]}})",
    R"({"allOf":[{"if":{"type":"string"},"then":{"maxLength":2}},{"if":{"type":"string"},"else":{"type":"null"}}]})",
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

TEST(Grammar, TakesNumbersWithinTheirBounds) {
  const auto of = [](const char* schema) { return Grammar::json_schema(schema, vocabulary()); };
  const Grammar sevens = of(R"({"type":"integer","multipleOf":7,"minimum":-100,"maximum":2345})");
  for (int i = -2500; i < 2500; ++i)
    EXPECT_EQ(takes(sevens, std::to_string(i)), i % 7 == 0 && i >= -100 && i <= 2345) << i;
  const Grammar cents = of(R"({"type":"number","multipleOf":0.05,"minimum":-1.2,"maximum":30})");
  for (int i = -3200; i < 3200; ++i) {
    const std::string text =
        fmt::format("{}{}.{:02}", i < 0 ? "-" : "", std::abs(i) / 100, std::abs(i) % 100);
    EXPECT_EQ(takes(cents, text), i % 5 == 0 && i >= -120 && i <= 3000) << text;
  }
  for (const char* text : {"0", "0.5", "29.9", "30"}) EXPECT_TRUE(takes(cents, text)) << text;
  for (const char* text : {"00.5", "30.0001", "0.051", ".5", "01", "-"})
    EXPECT_FALSE(takes(cents, text)) << text;
  const Grammar between = of(R"({"type":"number","minimum":0.5,"maximum":12.75})");
  for (const char* text : {"0.5", "0.50001", "12.75", "12.749999", "1", "7.125", "12.7500"}) {
    const bool within = std::string(text) != "12.7500";
    EXPECT_EQ(takes(between, text), within) << text;
  }
  for (const char* text : {"0.49", "12.751", "13", "-1", "0"}) EXPECT_FALSE(takes(between, text)) << text;
  const Grammar but = of(R"({"type":"integer","minimum":1,"maximum":9,"not":{"enum":[1,5]}})");
  for (int i = 0; i < 12; ++i) EXPECT_EQ(takes(but, std::to_string(i)), i > 1 && i < 10 && i != 5) << i;
}

TEST(Grammar, NestsNoDeeperThanReadersDo) {
  const Grammar any = Grammar::json_schema("{}", vocabulary());
  EXPECT_TRUE(takes(any, std::string(50, '[') + std::string(50, ']')));
  EXPECT_FALSE(takes(any, std::string(1000, '[') + std::string(1000, ']')));
}

TEST(Grammar, RefusesByName) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {R"({"type":"object","unevaluatedProperties":{}})", "'unevaluatedProperties' is not supported (at #)"},
      {R"({"properties":{"a":{"contains":{}}}})", "'contains' is not supported (at #/properties/a)"},
      {R"({"type":"array","uniqueItems":true})", "'uniqueItems' of items that are no list"},
      {R"({"type":"array","items":{"type":"string"},"uniqueItems":true})",
       "'uniqueItems' of items that are no list"},
      {R"({"type":"number","multipleOf":0})", "'multipleOf' must be more than 0"},
      {R"({"type":"number","multipleOf":123456})", "'multipleOf' of more than 2000"},
      {R"({"type":"number","multipleOf":1e-20})", "'multipleOf' has too many digits"},
      {R"({"type":"object","minProperties":2})", "'minProperties': keys that are not listed may be the same"},
      {R"({"type":"object","minProperties":0.5})", "'minProperties' must be a whole number"},
      {R"({"type":"object","patternProperties":{"(":{}}})", "the pattern"},
      {R"({"type":"object","patternProperties":{"a":5}})", "a schema must be"},
      {R"({"type":"object","patternProperties":[]})", "a value of the wrong type"},
      {R"({"type":"object","propertyNames":{"enum":["a"]}})", "'propertyNames' with 'enum'"},
      {R"({"not":{"pattern":"a"}})", "the opposite of 'pattern' is not supported"},
      {R"({"not":{}})", "nothing matches"},
      {R"({"type":"array","not":{"const":[1]}})", "'not' of lists and objects"},
      {R"({"not":{"$ref":"#"}})", "too deep"},
      {R"({"if":{"$ref":"#"},"then":{"type":"string"}})", "too deep"},
      {R"({"allOf":[{"patternProperties":{"a":{}}},{"additionalProperties":false}]})",
       "'patternProperties' beside another"},
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
      {R"({"minimum":1e300})", "'minimum' must be a whole number"},
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

TEST(Grammar, LeavesOutOnDemandWhatIsNotSupported) {
  const auto of = [](const char* schema) {
    GrammarPart part{GrammarPart::Kind::json_schema, schema, true};
    return Grammar({{part}}, vocabulary());
  };
  const Grammar set =
      of(R"({"type":"array","items":{"type":"string","format":"colour","contains":5},"uniqueItems":true})");
  EXPECT_TRUE(takes(set, R"(["a","a"])"));
  EXPECT_FALSE(takes(set, R"([1])"));
  const Grammar one = of(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})");
  EXPECT_TRUE(takes(one, "1.5"));
  EXPECT_FALSE(takes(one, "null"));
  // A condition that is not understood is none: neither is what depends on it.
  const Grammar free =
      of(R"({"type":"string","not":{"contains":{}},"if":{"contains":{}},"then":{"const":"a"}})");
  EXPECT_TRUE(takes(free, "\"b\""));
  EXPECT_FALSE(takes(free, "1"));
  const Grammar deep = of(
      R"({"type":"object","properties":{"a":{"$ref":"http://example.org"},"b":{"not":{"pattern":"x"},"type":"integer"},)"
      R"("c":{"allOf":[{"patternProperties":{"a":{}}},{"additionalProperties":false}],"type":"object"}},"minProperties":9})");
  EXPECT_TRUE(takes(deep, R"({"a":[1],"b":2,"c":{}})"));
  EXPECT_FALSE(takes(deep, R"({"b":"x"})"));
  // Whatever is damaged, something is held or nothing is.
  std::mt19937 random(23);
  for (int i = 0; i < 1500; ++i) {
    std::string text = kSchemas[random() % kSchemas.size()];
    for (unsigned k = 1 + random() % 3; k > 0; --k) {
      const std::size_t at = random() % text.size();
      static const std::vector<std::string> kPieces{
          "null", "-1", "[]", "{}", "1e9", "\"not\":", "\"if\":", "true", ",", "}", "\"$ref\":\"#\","};
      if (random() % 2 == 0)
        text.erase(at, 1 + random() % 6);
      else
        text.insert(at, kPieces[random() % kPieces.size()]);
      if (text.empty()) text = "{}";
    }
    for (const bool lenient : {false, true}) {
      try {
        GrammarPart part{GrammarPart::Kind::json_schema, text, lenient};
        Grammar({{part}}, vocabulary()).constraint()->allowed();
      } catch (const ValueError&) {
      }
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
