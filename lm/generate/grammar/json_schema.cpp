#include "lm/generate/grammar/json_schema.h"

#include <memory>

#include "engine/base/error.h"
#include "lm/generate/grammar/json_text.h"
#include "lm/generate/grammar/schema_compiler.h"

namespace caldera::grammar {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kMostTextDepth = 64;

Schema parse_schema(const std::string& text) {
  if (text.size() > kMostBytes) throw ValueError("grammar: the schema is larger than a megabyte");
  try {
    // What is nested deeper is left out while it is read, and refused.
    bool too_deep = false;
    const auto bound = [&](int depth, Schema::parse_event_t, Schema&) {
      too_deep = too_deep || depth > kMostTextDepth;
      return depth <= kMostTextDepth;
    };
    Schema schema = Schema::parse(text, bound);
    if (too_deep) throw ValueError("grammar: the schema nests too deep");
    return schema;
  } catch (const Schema::exception&) {
    throw ValueError("grammar: the schema is not JSON");
  }
}

}  // namespace

RuleId add_parts(Rules& rules, const std::vector<std::vector<GrammarPart>>& alternatives) {
  JsonText json(rules);
  const RuleId root = rules.add_rule();
  const StateId end = rules.add_state();
  rules.accept(end);
  for (const std::vector<GrammarPart>& parts : alternatives) {
    StateId state = rules.begin(root);
    for (const GrammarPart& part : parts) {
      switch (part.kind) {
        case GrammarPart::Kind::text:
          state = rules.text(state, part.text);
          break;
        case GrammarPart::Kind::json_object:
          state = rules.call(state, json.object());
          break;
        case GrammarPart::Kind::json_value:
          state = rules.call(state, json.value());
          break;
        case GrammarPart::Kind::json_schema: {
          const Schema schema = parse_schema(part.text);
          SchemaCompiler compiler(rules, json, schema);
          state = rules.call(state, compiler.compile(schema, "#"));
          break;
        }
      }
    }
    rules.skip(state, end);
  }
  return root;
}

}  // namespace caldera::grammar
