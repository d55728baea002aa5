#include "lm/generate/grammar/json_schema.h"

#include <memory>

#include "engine/base/error.h"
#include "lm/generate/grammar/gbnf.h"
#include "lm/generate/grammar/json_text.h"
#include "lm/generate/grammar/pattern.h"
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

/// Adds parts one after another. Returns the state behind them.
StateId add_sequence(Rules& rules, JsonText& json, StateId state, const std::vector<GrammarPart>& parts) {
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
      case GrammarPart::Kind::pattern:
        state = add_pattern(rules, state, read_pattern(part.text, "grammar", true));
        break;
      case GrammarPart::Kind::gbnf:
        state = rules.call(state, add_gbnf(rules, part.text));
        break;
      case GrammarPart::Kind::json_schema: {
        Schema schema = parse_schema(part.text);
        if (part.lenient) schema = relaxed(schema);
        SchemaCompiler compiler(rules, json, schema, part.lenient);
        state = rules.call(state, compiler.compile(schema, "#"));
        break;
      }
    }
  }
  return state;
}

}  // namespace

RuleId add_lists(Rules& rules, const std::vector<GrammarList>& lists) {
  JsonText json(rules);
  const RuleId root = rules.add_rule();
  const StateId end = rules.add_state();
  rules.accept(end);
  for (const GrammarList& list : lists) {
    const StateId items = rules.add_state();
    const StateId behind = rules.add_state();
    // A state of its own, as others lead on from where these begin.
    const StateId begin = rules.add_state();
    rules.skip(rules.begin(root), begin);
    rules.skip(add_sequence(rules, json, begin, list.before), items);
    for (const std::vector<GrammarPart>& item : list.items)
      rules.skip(add_sequence(rules, json, items, item), behind);
    if (!list.between.empty()) rules.skip(add_sequence(rules, json, behind, list.between), items);
    rules.skip(add_sequence(rules, json, behind, list.after), end);
  }
  return root;
}

}  // namespace caldera::grammar
