#include "lm/serve/protocol/messages_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace caldera::serve {
namespace {

// These say who asks, what is to be kept, or how hard to think.
constexpr const char* kPassedOver[] = {"metadata", "service_tier", "context_management"};

// The text of blocks, as one: "system" and results of tools.
std::string text_of_blocks(const Fields& fields, const char* name) {
  const Json* value = fields.find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  if (!value->is_array()) fields.fail(name, "must be a string or a list of blocks of text");
  std::string text;
  for (const Json& block : *value) {
    if (!block.is_object()) fields.fail(name, "must be a string or a list of blocks of text");
    const Fields inner(block, fields.path(name) + "[].");
    if (inner.text("type").value_or("") != "text")
      inner.fail("type", fmt::format("is '{}'; this model reads text alone",
                                     inner.text("type").value_or("").substr(0, 40)));
    if (!text.empty()) text += "\n";
    text += inner.text("text").value_or("");
  }
  return text;
}

/// What a message says, block by block.
class MessageReader {
 public:
  MessageReader(const Fields& fields, bool is_user, Json& messages)
      : fields_(fields), is_user_(is_user), messages_(messages) {}

  void read() {
    const Json* content = fields_.find("content");
    if (content == nullptr) fields_.fail("content", "is missing");
    if (content->is_string()) {
      parts_.push_back({{"type", "text"}, {"text", *content}});
    } else {
      if (!content->is_array()) fields_.fail("content", "must be a string or a list of blocks");
      for (const Json& block : *content) {
        if (!block.is_object()) fields_.fail("content", "must be a string or a list of blocks");
        read_block(Fields(block, fields_.path("content[].")));
      }
    }
    Json message{{"role", is_user_ ? "user" : "assistant"}, {"content", std::move(parts_)}};
    if (!calls_.empty()) message["tool_calls"] = std::move(calls_);
    if (!thinking_.empty()) message["reasoning_content"] = thinking_;
    // Results of tools are messages of their own, and the user may say nothing beside them.
    if (!message["content"].empty() || !has_results_) messages_.push_back(std::move(message));
  }

 private:
  void read_block(const Fields& block) {
    const std::string type = block.text("type").value_or("");
    if (type == "text") {
      parts_.push_back({{"type", "text"}, {"text", block.text("text").value_or("")}});
    } else if (is_user_ && type == "tool_result") {
      const auto id = block.text("tool_use_id");
      if (!id) block.fail("tool_use_id", "is missing");
      messages_.push_back(
          {{"role", "tool"}, {"tool_call_id", *id}, {"content", text_of_blocks(block, "content")}});
      has_results_ = true;
    } else if (!is_user_ && type == "tool_use") {
      const auto name = block.text("name");
      if (!name) block.fail("name", "is missing");
      const Json* input = block.object("input");
      calls_.push_back(
          {{"id", block.text("id").value_or("")},
           {"type", "function"},
           {"function", {{"name", *name}, {"arguments", dump(input == nullptr ? Json::object() : *input)}}}});
    } else if (!is_user_ && type == "thinking") {
      thinking_ += block.text("thinking").value_or("");
    } else if (type != "redacted_thinking") {
      block.fail("type", fmt::format("is '{}'; this model reads text, calls of tools and their results",
                                     type.substr(0, 40)));
    }
  }

  const Fields& fields_;
  bool is_user_;
  Json& messages_;
  Json parts_ = Json::array();
  Json calls_ = Json::array();
  std::string thinking_;
  bool has_results_ = false;
};

Json read_messages(const Fields& fields, const ServeLimits& limits) {
  Json messages = Json::array();
  if (const std::string system = text_of_blocks(fields, "system"); !system.empty())
    messages.push_back({{"role", "system"}, {"content", system}});
  const Json* list = fields.list("messages", limits.max_messages);
  if (list == nullptr || list->empty()) fields.fail("messages", "must list at least one message");
  std::string role;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    if (!(*list)[i].is_object()) throw bad_request(fmt::format("'{}' must be an object", path), path);
    const Fields message((*list)[i], path + ".");
    role = message.text("role").value_or("");
    if (role != "user" && role != "assistant") message.fail("role", "must be user or assistant");
    MessageReader(message, role == "user", messages).read();
  }
  return messages;
}

Json read_tools(const Fields& fields, const ServeLimits& limits) {
  Json tools = Json::array();
  const Json* list = fields.list("tools", limits.max_tools);
  if (list == nullptr) return tools;
  for (const Json& tool : *list) {
    if (!tool.is_object()) fields.fail("tools", "must list objects");
    const Fields inner(tool, "tools[].");
    if (const std::string type = inner.text("type").value_or("custom"); type != "custom")
      inner.fail("type", fmt::format("is '{}'; tools are the client's own", type.substr(0, 40)));
    Json function{{"name", inner.text("name").value_or("")}};
    if (const auto description = inner.text("description")) function["description"] = *description;
    if (const Json* schema = inner.object("input_schema")) function["parameters"] = *schema;
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

Json read_tool_choice(const Fields& fields) {
  const Json* choice = fields.object("tool_choice");
  if (choice == nullptr) return nullptr;
  const Fields inner(*choice, "tool_choice.");
  const std::string type = inner.text("type").value_or("");
  if (type == "auto" || type == "none") return type;
  if (type == "any") return "required";
  if (type != "tool") inner.fail("type", "must be auto, any, tool or none");
  return {{"type", "function"}, {"function", {{"name", inner.text("name").value_or("")}}}};
}

/// A text without a letter, or parts that are all such.
bool is_empty(const Json& content) {
  if (content.is_array())
    return std::ranges::all_of(content,
                               [](const Json& part) { return part.value("text", std::string()).empty(); });
  return content.is_null() || (content.is_string() && content.get_ref<const std::string&>().empty());
}

}  // namespace

ChatRequest read_messages_request(const Json& body, const ServeLimits& limits, bool counts) {
  const Fields fields(body);
  std::vector<std::string_view> known{
      "model", "messages", "system", "max_tokens",  "stop_sequences", "stream",       "temperature",
      "top_p", "top_k",    "tools",  "tool_choice", "thinking",       "output_config"};
  known.insert(known.end(), std::begin(kPassedOver), std::end(kPassedOver));
  fields.refuse_others(known);
  if (!counts && !fields.has("max_tokens")) fields.fail("max_tokens", "is missing");
  fields.texts("stop_sequences", limits.max_stops, limits.max_stop_bytes);

  Json chat = Json::object();
  for (const char* same : {"model", "max_tokens", "stream", "temperature", "top_p", "top_k"})
    if (const Json* value = fields.find(same)) chat[same] = *value;
  if (const Json* stops = fields.find("stop_sequences")) chat["stop"] = *stops;
  chat["messages"] = read_messages(fields, limits);
  // An answer that the last message has begun is gone on with; one that is empty, or calls tools, has begun
  // none.
  const Json& last = chat["messages"].back();
  if (last["role"] == "assistant" && !last.contains("tool_calls") && !is_empty(last["content"]))
    chat["continue_final_message"] = true;
  if (Json tools = read_tools(fields, limits); !tools.empty()) chat["tools"] = std::move(tools);
  if (Json choice = read_tool_choice(fields); !choice.is_null()) chat["tool_choice"] = std::move(choice);
  if (const Json* thinking = fields.object("thinking")) {
    const std::string type = Fields(*thinking, "thinking.").text("type").value_or("");
    if (type != "enabled" && type != "disabled" && type != "adaptive")
      fields.fail("thinking", "must be of type enabled, disabled or adaptive");
    if (type != "adaptive") chat["chat_template_kwargs"] = {{"enable_thinking", type == "enabled"}};
  }
  if (const Json* output = fields.object("output_config")) {
    const Fields inner(*output, "output_config.");
    inner.refuse_others({"effort", "format"});
    if (const Json* format = inner.object("format")) {
      const Fields described(*format, "output_config.format.");
      if (described.text("type").value_or("") != "json_schema" || !described.has("schema"))
        described.fail("type", "must be json_schema, with a schema");
      chat["response_format"] = {{"type", "json_schema"},
                                 {"json_schema", {{"schema", *described.find("schema")}}}};
    }
  }
  return read_chat_request(chat, limits);
}

}  // namespace caldera::serve
