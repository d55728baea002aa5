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
#include "lm/serve/service/held_calls.h"
#include "lm/serve/service/served_model.h"

namespace caldera::serve {

/// May be used from any thread. What it gives follows one text each.
class Constraints {
 public:
  /// Keeps a reference.
  explicit Constraints(const ServedModel& model) : model_(model) {}

  /// Holds a text to a form; none for any. Throws ApiError 400 for one that is not supported.
  std::shared_ptr<TokenConstraint> form(const OutputForm& form);
  /// Holds a text to one call of a tool: of the one named, or of any where the name is empty.
  std::shared_ptr<TokenConstraint> tool_call(const Json& tools, const std::string& name);
  /// Holds calls of tools to their schemas from where one begins, as far as these can be held; none where it
  /// is not known how calls begin. `thinking`: see HeldCalls.
  std::shared_ptr<TokenConstraint> begun_calls(const Json& tools, std::optional<ThinkingSplitter> thinking,
                                               bool several);
  /// Whether calls are held to their form, once they begin.
  bool holds_calls() const;
  /// Holds what follows the mark to a constraint; before it everything goes but the text's end.
  std::shared_ptr<TokenConstraint> behind(std::string_view mark, std::shared_ptr<TokenConstraint> then);

 private:
  using Alternatives = std::vector<std::vector<GrammarPart>>;

  std::shared_ptr<TokenConstraint> make(const Alternatives& alternatives, const std::string& param);
  std::shared_ptr<const Grammar> grammar_of(const std::vector<GrammarList>& lists);
  const GrammarVocabulary& vocabulary();

  const ServedModel& model_;
  std::mutex mutex_;
  std::optional<GrammarVocabulary> vocabulary_;  // made when it is first needed
  std::list<std::pair<std::string, std::shared_ptr<const Grammar>>> grammars_;  // the last used first
  std::shared_ptr<CallMarks> marks_;
};

}  // namespace caldera::serve
