#include "lm/serve/service/constraints.h"

#include <algorithm>

#include "engine/base/error.h"
#include "lm/generate/grammar/tokenizer_vocabulary.h"
#include "lm/serve/service/after_mark.h"

namespace caldera::serve {
namespace {

constexpr std::size_t kMostGrammars = 32;

GrammarPart text_part(std::string text) { return {GrammarPart::Kind::text, std::move(text)}; }

// One call as the format writes it.
std::vector<GrammarPart> call_parts(const ToolFormat& format, const Json& function) {
  const std::string name = dump(function["name"]);
  const GrammarPart arguments{GrammarPart::Kind::json_schema,
                              function.contains("parameters") && function["parameters"].is_object()
                                  ? dump(function["parameters"])
                                  : R"({"type":"object","additionalProperties":false})"};
  const std::string head = "{\"name\": " + name + ", \"" + std::string(format.arguments) + "\": ";
  const bool list = format.payload == ToolPayload::calls || format.payload == ToolPayload::named;
  const std::string blank = format.close.empty() || list ? "" : "\n";
  return {text_part(std::string(format.open) + blank + (list ? "[" : "") + head), arguments,
          text_part(std::string("}") + (list ? "]" : "") + blank + std::string(format.close))};
}

}  // namespace

std::shared_ptr<TokenConstraint> Constraints::format(const CompletionOptions& options) {
  GrammarPart part;
  part.kind = GrammarPart::Kind::json_object;
  if (options.format == OutputFormat::json_schema)
    part = {GrammarPart::Kind::json_schema, dump(options.schema)};
  return make({{part}}, "response_format");
}

std::shared_ptr<TokenConstraint> Constraints::tool_call(const Json& tools, const std::string& name) {
  if (!model_.tools || model_.tools->payload == ToolPayload::xml) {
    throw bad_request(
        "calls cannot be demanded of this model: how its chat template writes them is not known",
        "tool_choice");
  }
  Alternatives alternatives;
  for (const Json& tool : tools) {
    const Json& function = tool["function"];
    if (name.empty() || function["name"] == name) alternatives.push_back(call_parts(*model_.tools, function));
  }
  return make(alternatives, "tools");
}

std::shared_ptr<TokenConstraint> Constraints::behind(std::string_view mark,
                                                     std::shared_ptr<TokenConstraint> then) {
  if (then == nullptr || mark.empty()) return then;
  return std::make_shared<AfterMark>(*model_.tokenizer, model_.stop_ids, std::string(mark), std::move(then));
}

std::shared_ptr<TokenConstraint> Constraints::make(const Alternatives& alternatives,
                                                   const std::string& param) {
  try {
    return grammar_of(alternatives)->constraint();
  } catch (const ValueError& error) {
    throw bad_request(error.what(), param);
  }
}

std::shared_ptr<const Grammar> Constraints::grammar_of(const Alternatives& alternatives) {
  std::string key;
  for (const auto& parts : alternatives) {
    key += '|';
    for (const GrammarPart& part : parts)
      key += static_cast<char>('0' + static_cast<int>(part.kind)) + part.text;
  }
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(grammars_.begin(), grammars_.end(), [&](const auto& entry) { return entry.first == key; });
  if (found != grammars_.end()) {
    grammars_.splice(grammars_.begin(), grammars_, found);
    return grammars_.front().second;
  }
  auto grammar = std::make_shared<const Grammar>(alternatives, vocabulary());
  grammars_.emplace_front(key, grammar);
  if (grammars_.size() > kMostGrammars) grammars_.pop_back();
  return grammar;
}

const GrammarVocabulary& Constraints::vocabulary() {
  if (vocabulary_) return *vocabulary_;
  // Marks of calls are special tokens in some vocabularies: here they are texts as others.
  std::vector<std::string_view> marks;
  if (model_.tools) marks = {model_.tools->open, model_.tools->close};
  return vocabulary_.emplace(tokenizer_vocabulary(*model_.tokenizer, model_.stop_ids, marks));
}

}  // namespace caldera::serve
