#include "lm/serve/protocol/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace caldera::serve {
namespace {

constexpr std::array<std::string_view, 6> kRoles{"system",    "developer", "user",
                                                 "assistant", "tool",      "function"};

// A text, or a list of parts of text, which become one text.
Json read_content(const Fields& message) {
  const Json* content = message.find("content");
  if (content == nullptr) return nullptr;
  if (content->is_string()) return *content;
  if (!content->is_array()) message.fail("content", "must be a string or a list of parts");
  std::string text;
  for (const Json& part : *content) {
    if (!part.is_object()) message.fail("content", "must be a string or a list of parts");
    const Fields inner(part, message.path("content[]."));
    const std::string type = inner.text("type").value_or("");
    if (type != "text" && type != "refusal")
      inner.fail("type", fmt::format("is '{}'; this model reads text alone", type.substr(0, 40)));
    const auto piece = inner.text(type.c_str());
    if (!piece) inner.fail(type, "is missing");
    if (!text.empty()) text += "\n";
    text += *piece;
  }
  return text;
}

// Templates print arguments as JSON, so they get the object, not its text.
Json read_tool_calls(const Fields& message, const Json& calls, const ServeLimits& limits) {
  Json result = Json::array();
  for (const Json& call : calls) {
    if (!call.is_object()) message.fail("tool_calls", "must list objects");
    const Fields fields(call, message.path("tool_calls[]."));
    const Json* function = fields.object("function");
    if (function == nullptr) fields.fail("function", "is missing");
    const Fields inner(*function, fields.path("function."));
    const auto name = inner.text("name");
    if (!name) inner.fail("name", "is missing");
    Json arguments = Json::object();
    if (const Json* given = inner.find("arguments")) {
      arguments = *given;
      if (given->is_string()) {
        try {
          Json parsed = parse_body(given->get<std::string>(), limits.max_depth);
          arguments = std::move(parsed);
        } catch (const ApiError&) {
          // A model may have written what is no JSON: the template shows it as it is.
        }
      } else if (!given->is_object()) {
        inner.fail("arguments", "must be a string of JSON");
      }
    }
    Json entry{{"type", "function"}, {"function", {{"name", *name}, {"arguments", std::move(arguments)}}}};
    if (const auto id = fields.text("id")) entry["id"] = *id;
    result.push_back(std::move(entry));
  }
  return result;
}

Json read_message(const Json& entry, std::size_t index, const ServeLimits& limits) {
  const std::string path = fmt::format("messages[{}]", index);
  if (!entry.is_object()) throw bad_request(fmt::format("'{}' must be an object", path), path);
  const Fields fields(entry, path + ".");
  const auto role = fields.text("role");
  if (!role) fields.fail("role", "is missing");
  if (std::find(kRoles.begin(), kRoles.end(), *role) == kRoles.end())
    fields.fail("role", "must be system, developer, user, assistant or tool");
  Json message{{"role", *role}};
  Json content = read_content(fields);
  const Json* calls = fields.list("tool_calls", limits.max_tools);
  if (content.is_null() && (*role != "assistant" || calls == nullptr)) {
    if (*role != "assistant") fields.fail("content", "is missing");
    content = "";
  }
  message["content"] = std::move(content);
  if (calls != nullptr && !calls->empty()) message["tool_calls"] = read_tool_calls(fields, *calls, limits);
  for (const char* name : {"name", "tool_call_id", "reasoning_content"})
    if (const auto text = fields.text(name)) message[name] = *text;
  return message;
}

// The tools that may be called, as templates take them: the list of the request itself.
void read_tools(const Fields& fields, const ServeLimits& limits, ChatRequest& request) {
  const Json* tools = fields.list("tools", limits.max_tools);
  if (tools != nullptr && !tools->empty()) {
    for (const Json& tool : *tools) {
      if (!tool.is_object()) fields.fail("tools", "must list objects");
      const Fields inner(tool, "tools[].");
      if (inner.text("type").value_or("") != "function") inner.fail("type", "must be function");
      const Json* function = inner.object("function");
      if (function == nullptr) inner.fail("function", "is missing");
      const Fields described(*function, "tools[].function.");
      if (described.text("name").value_or("").empty()) described.fail("name", "is missing");
      described.object("parameters");
    }
    request.tools = *tools;
    request.tool_choice = ToolChoice::automatic;
  }
  const Json* choice = fields.find("tool_choice");
  if (choice == nullptr) return;
  if (choice->is_object()) {
    const Json* function = Fields(*choice, "tool_choice.").object("function");
    if (function == nullptr) fields.fail("tool_choice", "must name a function");
    request.tool_name = Fields(*function, "tool_choice.function.").text("name").value_or("");
    request.tool_choice = ToolChoice::named;
    const bool known = std::any_of(request.tools.begin(), request.tools.end(), [&](const Json& tool) {
      return tool["function"]["name"].get<std::string>() == request.tool_name;
    });
    if (!known) fields.fail("tool_choice", "names a function that is not in 'tools'");
    return;
  }
  const std::string name = fields.text("tool_choice").value_or("");
  if (name == "none") {
    request.tools = nullptr;
    request.tool_choice = ToolChoice::none;
  } else if (name == "required") {
    if (request.tools.is_null()) fields.fail("tool_choice", "is required, but there are no tools");
    request.tool_choice = ToolChoice::required;
  } else if (name != "auto") {
    fields.fail("tool_choice", "must be none, auto, required or name a function");
  }
}

/// Refuses to go on with what is no text of an answer.
void check_continued(const Fields& fields, const ChatRequest& request) {
  constexpr const char* kName = "continue_final_message";
  if (request.add_generation_prompt)
    fields.fail(kName, "goes on with the last message, and \"add_generation_prompt\" begins one: not both");
  const Json& last = request.messages.back();
  if (last.contains("tool_calls")) fields.fail(kName, "cannot go on behind calls of tools");
  if (!has_text(last["content"])) fields.fail(kName, "needs a last message that has a text");
}

}  // namespace

bool has_text(const Json& content) {
  return content.is_string() &&
         content.get_ref<const std::string&>().find_first_not_of(" \t\r\n") != std::string::npos;
}

ChatRequest read_chat_request(const Json& body, const ServeLimits& limits) {
  const Fields fields(body);
  std::vector<std::string_view> known = option_fields();
  known.insert(known.end(), {"messages", "max_completion_tokens", "top_logprobs", "tools", "tool_choice",
                             "parallel_tool_calls", "chat_template_kwargs", "add_generation_prompt",
                             "continue_final_message", "reasoning_effort", "truncation"});
  fields.refuse_others(known);

  ChatRequest request;
  request.options = read_options(fields, limits);
  if (const auto most = fields.integer("max_completion_tokens", 1, limits.max_tokens))
    request.options.max_tokens = *most;
  if (request.options.min_tokens > request.options.max_tokens.value_or(limits.max_tokens))
    fields.fail("min_tokens", "must not be more than 'max_tokens'");
  const bool logprobs = fields.flag("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, 20);
  if (top && !logprobs) fields.fail("top_logprobs", "needs \"logprobs\": true");
  if (logprobs) request.options.logprobs = top.value_or(0);

  const Json* messages = fields.list("messages", limits.max_messages);
  if (messages == nullptr || messages->empty()) fields.fail("messages", "must list at least one message");
  for (std::size_t i = 0; i < messages->size(); ++i)
    request.messages.push_back(read_message((*messages)[i], i, limits));
  read_tools(fields, limits, request);
  if (!request.options.form.is_any() && request.tool_choice > ToolChoice::automatic)
    fields.fail("tool_choice",
                fmt::format("demands a call, which cannot follow '{}' as well", request.options.form.param));
  request.parallel_calls = fields.flag("parallel_tool_calls").value_or(true);
  if (const Json* variables = fields.object("chat_template_kwargs")) {
    request.variables = *variables;
    for (const char* own : {"messages", "tools"})
      if (variables->contains(own))
        fields.fail("chat_template_kwargs", fmt::format("may not have '{}', a field of the request", own));
  }
  if (const auto effort = fields.text("reasoning_effort")) request.variables["reasoning_effort"] = *effort;
  request.continues = fields.flag("continue_final_message").value_or(false);
  request.add_generation_prompt = fields.flag("add_generation_prompt").value_or(!request.continues);
  if (request.continues) check_continued(fields, request);
  const std::string truncation = fields.text("truncation").value_or("disabled");
  if (truncation != "auto" && truncation != "disabled")
    fields.fail("truncation", "must be auto (old turns go where there is no room for all) or disabled");
  request.drops_old_turns = truncation == "auto";
  return request;
}

}  // namespace caldera::serve
