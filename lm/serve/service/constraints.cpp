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
GrammarPart arguments_part(const Json& function, bool lenient) {
  const bool has_schema = function.contains("parameters") && function["parameters"].is_object();
  if (!has_schema && lenient) return {GrammarPart::Kind::json_object, {}};
  return {GrammarPart::Kind::json_schema,
          has_schema ? dump(function["parameters"]) : R"({"type":"object","additionalProperties":false})",
          lenient};
}

// What is written with blanks of one kind or another: an expression.
GrammarPart spaced_part(const std::string& text, bool last = false) {
  constexpr std::string_view kBlank = "[ \\n]{0,2}";
  std::string pattern(kBlank);
  for (const char c : text) {
    if (c == ' ') {
      pattern += " ?";
      continue;
    }
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  if (!text.empty() && !last) pattern += kBlank;
  return {GrammarPart::Kind::pattern, std::move(pattern)};
}

void append_key(std::string& key, const std::vector<GrammarPart>& parts) {
  for (const GrammarPart& part : parts)
    key += fmt::format("{}:{}:{}:{}", static_cast<int>(part.kind), part.lenient ? 1 : 0, part.text.size(),
                       part.text);
  key += '|';
}

std::string key_of(const std::vector<GrammarList>& lists) {
  std::string key;
  for (const GrammarList& list : lists) {
    append_key(key, list.before);
    for (const auto& item : list.items) append_key(key, item);
    key += '-';
    append_key(key, list.between);
    append_key(key, list.after);
  }
  return key;
}

}  // namespace

std::shared_ptr<TokenConstraint> Constraints::form(const OutputForm& form) {
  if (form.is_any()) return nullptr;
  Alternatives alternatives = form.alternatives;
  for (std::vector<GrammarPart>& parts : alternatives)
    for (GrammarPart& part : parts) part.lenient = model_.lenient_schemas;
  return make(alternatives, form.param);
}

std::shared_ptr<TokenConstraint> Constraints::begun_calls(const Json& tools,
                                                          std::optional<ThinkingSplitter> thinking,
                                                          bool several) {
  if (!holds_calls()) return nullptr;
  std::vector<GrammarList> lists;
  for (const caldera::detail::ToolCallsForm& form :
       caldera::detail::payload_of(*model_.tools).forms(*model_.tools)) {
    GrammarList list;
    list.before = {spaced_part(form.before)};
    for (const Json& tool : tools) {
      const Json& function = tool["function"];
      const std::string name = form.quoted ? dump(function["name"]) : function["name"].get<std::string>();
      list.items.push_back({spaced_part(form.head), text_part(name), spaced_part(form.middle),
                            arguments_part(function, true), spaced_part(form.tail)});
    }
    if (several && !form.between.empty()) list.between = {spaced_part(form.between)};
    list.after = {spaced_part(form.after, true)};
    lists.push_back(std::move(list));
  }
  std::shared_ptr<const Grammar> grammar;
  try {
    grammar = grammar_of(lists);
  } catch (const ValueError&) {
    // One that is too large, or that nothing matches: arguments are objects then.
    for (GrammarList& list : lists)
      for (std::vector<GrammarPart>& item : list.items) item[3] = {GrammarPart::Kind::json_object, {}};
    grammar = grammar_of(lists);
  }
  {
    const std::lock_guard lock(mutex_);
    if (marks_ == nullptr) marks_ = std::make_shared<CallMarks>(model_);
  }
  return std::make_shared<HeldCalls>(marks_, std::move(grammar), std::move(thinking), several);
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
    alternatives.push_back({text_part(frame->before), arguments_part(function, model_.lenient_schemas),
                            text_part(frame->after)});
  }
  return make(alternatives, "tools");
}

bool Constraints::holds_calls() const {
  return model_.tools && !model_.tools->open.empty() &&
         !caldera::detail::payload_of(*model_.tools).forms(*model_.tools).empty();
}

std::shared_ptr<TokenConstraint> Constraints::behind(std::string_view mark,
                                                     std::shared_ptr<TokenConstraint> then) {
  if (then == nullptr || mark.empty()) return then;
  return std::make_shared<AfterMark>(*model_.tokenizer, model_.stop_ids, std::string(mark), std::move(then));
}

std::shared_ptr<TokenConstraint> Constraints::make(const Alternatives& alternatives,
                                                   const std::string& param) {
  try {
    return grammar_of({{{}, alternatives, {}, {}}})->constraint();
  } catch (const ValueError& error) {
    throw bad_request(error.what(), param);
  }
}

std::shared_ptr<const Grammar> Constraints::grammar_of(const std::vector<GrammarList>& lists) {
  const std::string key = key_of(lists);
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(grammars_.begin(), grammars_.end(), [&](const auto& entry) { return entry.first == key; });
  if (found != grammars_.end()) {
    grammars_.splice(grammars_.begin(), grammars_, found);
    return grammars_.front().second;
  }
  auto grammar = std::make_shared<const Grammar>(lists, vocabulary());
  grammars_.emplace_front(key, grammar);
  if (grammars_.size() > kMostGrammars) grammars_.pop_back();
  return grammar;
}

const GrammarVocabulary& Constraints::vocabulary() {
  if (vocabulary_) return *vocabulary_;
  // Marks of calls are special tokens in some vocabularies: here they are texts as others.
  std::vector<std::string_view> marks;
  if (model_.tools) {
    marks = {model_.tools->open, model_.tools->close};
    marks.insert(marks.end(), model_.tools->tokens.begin(), model_.tools->tokens.end());
  }
  return vocabulary_.emplace(tokenizer_vocabulary(*model_.tokenizer, model_.stop_ids, marks));
}

}  // namespace caldera::serve
