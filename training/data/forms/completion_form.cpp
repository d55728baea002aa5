// {"prompt", "completion"}: texts, or lists of messages.
#include <nlohmann/json.hpp>

#include "training/data/forms/chat_format.h"
#include "training/data/forms/form.h"

namespace caldera::detail {
namespace {

Example read_completion(const DataLine& line) {
  const JsonFields& fields = line.fields;
  if (fields.kind("prompt") == JsonKind::list && fields.kind("completion") == JsonKind::list) {
    const nlohmann::ordered_json prompt = chat_messages(line, "prompt");
    const nlohmann::ordered_json completion = chat_messages(line, "completion");
    Example example = line.chat->answer(prompt, completion, chat_tools(line));
    // Of a conversation only what the assistant says is learned.
    example.learned.emplace({TextSpan{0, example.text.size()}});
    example.label = label_of(line);
    return example;
  }
  return {.prompt = fields.require_string("prompt"),
          .text = fields.require_string("completion"),
          .label = label_of(line)};
}

}  // namespace

DataForm completion_form() {
  return {.shown = "{\"prompt\", \"completion\"}",
          .is_that =
              [](const JsonFields& fields) {
                return fields.names_field("prompt") || fields.names_field("completion");
              },
          .read = read_completion};
}

}  // namespace caldera::detail
