#include "cli/serve/service/constraints.h"

namespace caldera::serve {

Constrain Constraints::format(const CompletionOptions&) const {
  throw bad_request("'response_format' is not available for this model", "response_format");
}

Constrain Constraints::tool_call(const ToolFormat&, const Json&, const std::string&) const {
  throw bad_request("calls cannot be demanded of this model", "tool_choice");
}

}  // namespace caldera::serve
