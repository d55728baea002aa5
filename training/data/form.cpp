#include "training/data/form.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"

// A line a form: F(NAME) stands for `DataForm NAME_form()` of data/NAME_form.cpp. The more particular first.
#define CALDERA_DATA_FORMS(F) \
  F(pair)                     \
  F(chat)                     \
  F(completion)               \
  F(text)

namespace caldera::detail {

#define CALDERA_DECLARE_FORM(name) DataForm name##_form();
CALDERA_DATA_FORMS(CALDERA_DECLARE_FORM)
#undef CALDERA_DECLARE_FORM

const std::vector<DataForm>& data_forms() {
#define CALDERA_CALL_FORM(name) name##_form(),
  static const std::vector<DataForm> kForms{CALDERA_DATA_FORMS(CALDERA_CALL_FORM)};
#undef CALDERA_CALL_FORM
  return kForms;
}

nlohmann::ordered_json chat_messages(const DataLine& line, const char* name) {
  if (line.chat == nullptr)
    line.fields.fail(name, "needs a chat template, and the model has none; use {\"prompt\", \"completion\"}");
  nlohmann::ordered_json messages = parse_ordered_json(line.text, line.fields.where()).at(name);
  if (!messages.is_array() || messages.empty()) line.fields.fail(name, "must be a list of messages");
  for (const auto& message : messages) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      line.fields.fail(name, "must be a list of objects with 'role' and 'content'");
  }
  return messages;
}

nlohmann::ordered_json chat_tools(const DataLine& line) {
  if (!line.fields.has("tools")) return {};
  return parse_ordered_json(line.text, line.fields.where()).at("tools");
}

}  // namespace caldera::detail
