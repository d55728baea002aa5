// Constraints: what a request demands of its text's form, for the engine to enforce.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lm/generate/grammar/grammar.h"
#include "lm/serve/protocol/options.h"
#include "lm/serve/service/served_model.h"

namespace caldera::serve {

/// May be used from any thread. What it gives follows one text each.
class Constraints {
 public:
  /// Keeps a reference.
  explicit Constraints(const ServedModel& model) : model_(model) {}

  /// Holds a text to "response_format". Throws ApiError 400 for a schema
  /// that is not supported.
  std::shared_ptr<TokenConstraint> format(const CompletionOptions& options);
  /// Holds a text to one call of a tool: of the one named, or of any where the name is empty.
  std::shared_ptr<TokenConstraint> tool_call(const Json& tools, const std::string& name);
  /// Holds what follows the mark to a constraint; before it everything goes but the text's end.
  std::shared_ptr<TokenConstraint> behind(std::string_view mark, std::shared_ptr<TokenConstraint> then);

 private:
  using Alternatives = std::vector<std::vector<GrammarPart>>;

  std::shared_ptr<TokenConstraint> make(const Alternatives& alternatives, const std::string& param);
  std::shared_ptr<const Grammar> grammar_of(const Alternatives& alternatives);
  const GrammarVocabulary& vocabulary();

  const ServedModel& model_;
  std::mutex mutex_;
  std::optional<GrammarVocabulary> vocabulary_;  // made when it is first needed
  std::list<std::pair<std::string, std::shared_ptr<const Grammar>>> grammars_;  // the last used first
};

}  // namespace caldera::serve
