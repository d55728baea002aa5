#include "training/data/forms/form.h"

#include <nlohmann/json.hpp>

namespace caldera::detail {

nlohmann::ordered_json chat_messages(const DataLine& line, const char* name) {
  if (line.chat == nullptr)
    line.fields.fail(name, "needs a chat template, and the model has none; use {\"prompt\", \"completion\"}");
  nlohmann::ordered_json messages = line.object.at(name);
  if (messages.is_null()) line.fields.fail(name, "is null, and must be a list of messages");
  if (!messages.is_array() || messages.empty()) line.fields.fail(name, "must be a list of messages");
  for (const auto& message : messages) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      line.fields.fail(name, "must be a list of objects with 'role' and 'content'");
  }
  return messages;
}

std::optional<double> label_of(const DataLine& line) {
  const nlohmann::json* label = line.fields.find("label");
  if (label == nullptr) return std::nullopt;
  if (label->is_boolean()) return label->get<bool>() ? 1 : 0;
  if (label->is_number_integer() && label->get<std::int64_t>() >= 0) return label->get<double>();
  return std::nullopt;
}

nlohmann::ordered_json chat_tools(const DataLine& line) {
  if (!line.fields.has("tools")) return {};
  return line.object.at("tools");
}

}  // namespace caldera::detail
