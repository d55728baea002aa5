// {"anchor", "positive"}: two texts that belong together, as a question and its answer.
#include "training/data/forms/form.h"

namespace caldera::detail {

DataForm similar_form() {
  return {.shown = "{\"anchor\", \"positive\"}",
          .is_that = [](const JsonFields& fields) { return fields.has("anchor") || fields.has("positive"); },
          .read =
              [](const DataLine& line) {
                return Example{.prompt = {},
                               .text = line.fields.require_string("anchor"),
                               .rejected = line.fields.require_string("positive"),
                               .kind = ExampleKind::similar};
              }};
}

}  // namespace caldera::detail
