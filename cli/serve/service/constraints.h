// Constraints: what a request demands of its text's form, for the engine to enforce.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "cli/serve/protocol/options.h"
#include "cli/serve/service/served_model.h"

namespace caldera::serve {

/// Changes logits so that only some tokens can be drawn: GenerateRequest::constrain.
using Constrain = std::function<void(std::span<float> logits, std::span<const std::int32_t> seen)>;

/// May be used from any thread. What it gives follows one text each.
class Constraints {
 public:
  /// Keeps a reference.
  explicit Constraints(const ServedModel& model) : model_(model) {}

  /// Holds a text to "response_format". Throws ApiError 400 for a schema that is not supported.
  Constrain format(const CompletionOptions& options) const;
  /// Holds a text to one call of a tool: of the one named, or of any where the name is empty.
  Constrain tool_call(const ToolFormat& format, const Json& tools, const std::string& name) const;

 private:
  const ServedModel& model_;
};

}  // namespace caldera::serve
