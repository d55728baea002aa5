#include "lm/serve/service/constraints.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.h"
#include "lm/chat/tools/tool_payloads.h"
#include "lm/generate/grammar/tokenizer_vocabulary.h"
#include "lm/serve/service/after_mark.h"

namespace caldera::serve {
namespace {

constexpr std::size_t kMostGrammars = 32;

GrammarPart text_part(std::string text) { return {GrammarPart::Kind::text, std::move(text)}; }

// The arguments of a function, as its schema has them.
GrammarPart arguments_part(const Json& function) {
  const bool has_schema = function.contains("parameters") && function["parameters"].is_object();
  return {GrammarPart::Kind::json_schema,
          has_schema ? dump(function["parameters"]) : R"({"type":"object","additionalProperties":false})"};
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
  if (!model_.tools)
    throw bad_request(
        "calls cannot be demanded of this model: how its chat template writes them is not known",
        "tool_choice");
  const caldera::detail::ToolPayload& payload = caldera::detail::payload_of(*model_.tools);
  Alternatives alternatives;
  for (const Json& tool : tools) {
    const Json& function = tool["function"];
    if (!name.empty() && function["name"] != name) continue;
    const auto frame = payload.frame(dump(function["name"]), *model_.tools);
    if (!frame)
      throw bad_request(fmt::format("calls cannot be demanded of this model: it writes them as '{}', whose "
                                    "arguments are no JSON",
                                    payload.name),
                        "tool_choice");
    alternatives.push_back({text_part(frame->before), arguments_part(function), text_part(frame->after)});
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
