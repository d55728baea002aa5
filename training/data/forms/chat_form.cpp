// {"messages"}, with or without "tools": a conversation, of which what the assistant says is learned.
#include <nlohmann/json.hpp>

#include "training/data/forms/chat_format.h"
#include "training/data/forms/form.h"

namespace caldera::detail {
namespace {

Example read_chat(const DataLine& line) {
  const nlohmann::ordered_json messages = chat_messages(line, "messages");
  return line.chat->conversation(messages, chat_tools(line));
}

}  // namespace

DataForm chat_form() {
  return {.shown = "{\"messages\"}",
          .is_that = [](const JsonFields& fields) { return fields.names_field("messages"); },
          .read = read_chat};
}

}  // namespace caldera::detail
