// {"text"}: a text, all of which is learned.
#include "training/data/forms/form.h"

namespace caldera::detail {

DataForm text_form() {
  return {.shown = "{\"text\"}",
          .is_that = [](const JsonFields& fields) { return fields.names_field("text"); },
          .read =
              [](const DataLine& line) {
                return Example{
                    .prompt = {}, .text = line.fields.require_string("text"), .label = label_of(line)};
              }};
}

}  // namespace caldera::detail
