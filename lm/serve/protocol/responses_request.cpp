#include "lm/serve/protocol/responses_request.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

namespace caldera::serve {
namespace {

// These say who asks, or what is to be kept or told beside the answer.
constexpr std::string_view kOfAccounts[] = {"metadata",
                                            "store",
                                            "service_tier",
                                            "safety_identifier",
                                            "user",
                                            "prompt_cache_key",
                                            "prompt_cache_retention",
                                            "include",
                                            "max_tool_calls"};

// As vLLM has them beside OpenAI's.
constexpr const char* kOfSampling[] = {
    "seed", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty"};

std::string item_type(const Fields& item) { return item.text("type").value_or("message"); }

/// The items of a conversation, one after another, as messages.
class ItemReader {
 public:
  ItemReader(const ServeLimits& limits, Json& messages) : limits_(limits), messages_(messages) {}

  void read(const Fields& item) {
    const std::string type = item_type(item);
    if (type == "message") return read_message(item);
    if (type == "function_call") return read_call(item);
    if (type == "function_call_output") return read_output(item);
    if (type == "reasoning") return read_reasoning(item);
    item.fail("type", fmt::format("is '{}'; messages, function calls, their outputs and reasoning are read",
                                  type.substr(0, 40)));
  }

 private:
  void read_message(const Fields& item) {
    const std::string role = item.text("role").value_or("");
    Json message{{"role", role}, {"content", read_content(item, "content")}};
    if (role == "assistant") take_reasoning(message);
    messages_.push_back(std::move(message));
  }

  Json read_content(const Fields& item, const char* name) const {
    const Json* content = item.find(name);
    if (content == nullptr) item.fail(name, "is missing");
    if (content->is_string()) return *content;
    const Json* parts = item.list(name, limits_.max_messages);
    Json texts = Json::array();
    for (const Json& part : *parts) {
      if (!part.is_object()) item.fail(name, "must be a string or a list of parts");
      const Fields inner(part, item.path(name) + "[].");
      const std::string type = inner.text("type").value_or("");
      const bool refusal = type == "refusal";
      if (!refusal && type != "input_text" && type != "output_text" && type != "text")
        inner.fail("type", fmt::format("is '{}'; this model reads text alone", type.substr(0, 40)));
      const auto text = inner.text(refusal ? "refusal" : "text");
      if (!text) inner.fail(refusal ? "refusal" : "text", "is missing");
      texts.push_back({{"type", "text"}, {"text", *text}});
    }
    return texts;
  }

  // Calls that follow one another, and what was said before them, are one message.
  void read_call(const Fields& item) {
    const auto name = item.text("name");
    if (!name) item.fail("name", "is missing");
    const std::string id = item.text("call_id").value_or("");
    if (messages_.empty() || messages_.back()["role"] != "assistant" || !reasoning_.empty()) {
      Json message{{"role", "assistant"}, {"content", nullptr}};
      take_reasoning(message);
      messages_.push_back(std::move(message));
    }
    messages_.back()["tool_calls"].push_back(
        {{"id", id},
         {"type", "function"},
         {"function", {{"name", *name}, {"arguments", item.text("arguments").value_or("{}")}}}});
  }

  void read_output(const Fields& item) {
    const auto id = item.text("call_id");
    if (!id) item.fail("call_id", "is missing");
    messages_.push_back({{"role", "tool"}, {"tool_call_id", *id}, {"content", read_content(item, "output")}});
  }

  void read_reasoning(const Fields& item) {
    for (const char* name : {"content", "summary"}) {
      const Json* parts = item.list(name, limits_.max_messages);
      if (parts == nullptr || parts->empty()) continue;
      for (const Json& part : *parts) {
        if (!part.is_object()) item.fail(name, "must list objects");
        reasoning_ += Fields(part, item.path(name) + "[].").text("text").value_or("");
      }
      return;
    }
  }

  // What was thought belongs to what is said next.
  void take_reasoning(Json& message) {
    if (!reasoning_.empty()) message["reasoning_content"] = std::exchange(reasoning_, {});
  }

  const ServeLimits& limits_;
  Json& messages_;
  std::string reasoning_;
};

Json read_input(const Fields& fields, const ServeLimits& limits) {
  Json messages = Json::array();
  if (const auto instructions = fields.text("instructions"))
    messages.push_back({{"role", "system"}, {"content", *instructions}});
  const Json* input = fields.find("input");
  if (input == nullptr) fields.fail("input", "is missing");
  if (input->is_string()) {
    messages.push_back({{"role", "user"}, {"content", *input}});
    return messages;
  }
  const Json* items = fields.list("input", limits.max_messages);
  if (items->empty()) fields.fail("input", "must list at least one item");
  ItemReader reader(limits, messages);
  for (std::size_t i = 0; i < items->size(); ++i) {
    const std::string path = fmt::format("input[{}]", i);
    if (!(*items)[i].is_object()) throw bad_request(fmt::format("'{}' must be an object", path), path);
    reader.read(Fields((*items)[i], path + "."));
  }
  return messages;
}

Json read_functions(const Fields& fields, const ServeLimits& limits) {
  Json tools = Json::array();
  const Json* list = fields.list("tools", limits.max_tools);
  if (list == nullptr) return tools;
  for (const Json& tool : *list) {
    if (!tool.is_object()) fields.fail("tools", "must list objects");
    const Fields inner(tool, "tools[].");
    if (const std::string type = inner.text("type").value_or(""); type != "function")
      inner.fail("type", fmt::format("is '{}'; tools are functions of the client's own", type.substr(0, 40)));
    Json function = tool;
    function.erase("type");
    if (inner.object("parameters") == nullptr) function.erase("parameters");
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

Json read_function_choice(const Fields& fields) {
  const Json* choice = fields.find("tool_choice");
  if (choice == nullptr || !choice->is_object()) return choice == nullptr ? Json() : *choice;
  const Fields inner(*choice, "tool_choice.");
  if (inner.text("type").value_or("") != "function") inner.fail("type", "must be function");
  return {{"type", "function"}, {"function", {{"name", inner.text("name").value_or("")}}}};
}

// "text": {"format": {"type", "name", "schema"}}.
Json read_text_format(const Fields& fields) {
  const Json* text = fields.object("text");
  if (text == nullptr) return nullptr;
  const Fields inner(*text, "text.");
  inner.refuse_others({"format", "verbosity"});
  const Json* format = inner.object("format");
  if (format == nullptr) return nullptr;
  const Fields described(*format, "text.format.");
  const std::string type = described.text("type").value_or("");
  if (type == "text") return nullptr;
  if (type == "json_object") return {{"type", type}};
  if (type != "json_schema") described.fail("type", "must be text, json_object or json_schema");
  const Json* schema = described.find("schema");
  if (schema == nullptr || (!schema->is_object() && !schema->is_boolean()))
    described.fail("schema", "must be a schema: an object, true or false");
  return {{"type", type}, {"json_schema", {{"schema", *schema}}}};
}

void refuse_what_is_kept(const Fields& fields) {
  for (const char* name : {"previous_response_id", "conversation", "prompt"})
    if (fields.has(name))
      fields.fail(name, "refers to what is kept, and this server keeps nothing: send all items in 'input'");
  if (fields.flag("background").value_or(false)) fields.fail("background", "is not supported");
}

}  // namespace

ResponsesRequest read_responses_request(const Json& body, const ServeLimits& limits) {
  const Fields fields(body);
  std::vector<std::string_view> known{
      "model",          "input",      "instructions",         "max_output_tokens",
      "temperature",    "top_p",      "top_logprobs",         "stream",
      "stream_options", "tools",      "tool_choice",          "parallel_tool_calls",
      "text",           "reasoning",  "previous_response_id", "conversation",
      "prompt",         "background", "truncation",           "chat_template_kwargs"};
  known.insert(known.end(), std::begin(kOfAccounts), std::end(kOfAccounts));
  known.insert(known.end(), std::begin(kOfSampling), std::end(kOfSampling));
  fields.refuse_others(known);
  refuse_what_is_kept(fields);
  fields.object("stream_options");

  Json chat = Json::object();
  for (const char* same : {"model", "stream", "temperature", "top_p", "parallel_tool_calls",
                           "chat_template_kwargs", "truncation"})
    if (const Json* value = fields.find(same)) chat[same] = *value;
  for (const char* name : kOfSampling)
    if (const Json* value = fields.find(name)) chat[name] = *value;
  if (const auto most = fields.integer("max_output_tokens", 1, limits.max_tokens)) chat["max_tokens"] = *most;
  if (const auto top = fields.integer("top_logprobs", 0, 20)) {
    chat["logprobs"] = true;
    chat["top_logprobs"] = *top;
  }
  chat["messages"] = read_input(fields, limits);
  if (Json tools = read_functions(fields, limits); !tools.empty()) chat["tools"] = std::move(tools);
  if (Json choice = read_function_choice(fields); !choice.is_null()) chat["tool_choice"] = std::move(choice);
  if (Json format = read_text_format(fields); !format.is_null()) chat["response_format"] = std::move(format);
  if (const Json* reasoning = fields.object("reasoning")) {
    const Fields inner(*reasoning, "reasoning.");
    inner.refuse_others({"effort", "summary", "generate_summary"});
    if (const auto effort = inner.text("effort")) chat["reasoning_effort"] = *effort;
  }

  ResponsesRequest request;
  request.chat = read_chat_request(chat, limits);
  const auto told = [&](const char* name, const Json& otherwise) {
    const Json* value = fields.find(name);
    request.told[name] = value == nullptr ? otherwise : *value;
  };
  told("instructions", nullptr);
  told("max_output_tokens", nullptr);
  told("metadata", Json::object());
  told("parallel_tool_calls", true);
  told("reasoning", {{"effort", nullptr}, {"summary", nullptr}});
  told("text", {{"format", {{"type", "text"}}}});
  told("tool_choice", "auto");
  told("tools", Json::array());
  told("truncation", "disabled");
  told("user", nullptr);
  request.told["temperature"] = request.chat.options.sampling.temperature;
  request.told["top_p"] = request.chat.options.sampling.top_p;
  return request;
}

}  // namespace caldera::serve
