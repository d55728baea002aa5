// {"prompt"} alone: what the model is to answer while it is trained. A text, or a list of messages.
#include <nlohmann/json.hpp>

#include "training/data/forms/chat_format.h"
#include "training/data/forms/form.h"

namespace caldera::detail {
namespace {

Example read_prompt(const DataLine& line) {
  Example example;
  if (line.fields.kind("prompt") == JsonKind::list) {
    // What stands in front of any answer.
    const nlohmann::ordered_json answer = {{{"role", "assistant"}, {"content", ""}}};
    example = line.chat->answer(chat_messages(line, "prompt"), answer, chat_tools(line));
    example.text = std::move(example.prompt);
    example.prompt.clear();
    example.learned.reset();
  } else {
    example.text = line.fields.require_string("prompt");
  }
  example.kind = ExampleKind::prompt;
  example.row = line.object.dump();
  return example;
}

}  // namespace

DataForm prompt_form() {
  return {.shown = "{\"prompt\"}",
          .is_that =
              [](const JsonFields& fields) {
                return fields.has("prompt") && !fields.has("completion") && !fields.has("label");
              },
          .read = read_prompt};
}

}  // namespace caldera::detail
