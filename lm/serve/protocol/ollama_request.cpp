#include "lm/serve/protocol/ollama_request.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace caldera::serve {
namespace {

// Names of "options", and what they are called here.
constexpr std::array<std::pair<const char*, const char*>, 14> kOptions{
    {{"temperature", "temperature"},
     {"top_k", "top_k"},
     {"top_p", "top_p"},
     {"min_p", "min_p"},
     {"typical_p", "typical_p"},
     {"seed", "seed"},
     {"stop", "stop"},
     {"repeat_penalty", "repetition_penalty"},
     {"presence_penalty", "presence_penalty"},
     {"frequency_penalty", "frequency_penalty"},
     {"mirostat", "mirostat"},
     {"mirostat_tau", "mirostat_tau"},
     {"mirostat_eta", "mirostat_eta"},
     {"num_predict", "max_tokens"}}};
// How a model is loaded, which happened when the server began.
constexpr std::array<std::string_view, 11> kOfLoading{"num_ctx",    "num_batch", "num_gpu",   "main_gpu",
                                                      "num_thread", "use_mmap",  "use_mlock", "low_vram",
                                                      "numa",       "f16_kv",    "vocab_only"};

// Other fields, as OpenAI's API and as this one call them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kFields{
    {{"n_keep", "options.num_keep"},
     {"context_shift", "shift"},
     {"truncation", "truncate"},
     {"response_format", "format"},
     {"json_schema", "format"},
     {"reasoning_effort", "think"},
     {"chat_template_kwargs", "think"}}};

/// The name of a field in this API.
std::string name_here(const std::string& name) {
  for (const auto& [here, own] : kOptions)
    if (name == own) return fmt::format("options.{}", here);
  for (const auto& [own, here] : kFields)
    if (name == own) return std::string(here);
  return name;
}

/// Reads what this API's request was made into; refusals name the field that it came from.
template <class Read>
auto read_renamed(const Read& read, const Json& request, const ServeLimits& limits) {
  try {
    auto result = read(request, limits);
    result.options.form.param = name_here(result.options.form.param);
    return result;
  } catch (const ApiError& error) {
    const std::string name = name_here(error.param());
    if (name == error.param()) throw;
    std::string message = error.what();
    const std::string quoted = fmt::format("'{}'", error.param());
    if (const std::size_t at = message.find(quoted); at != std::string::npos)
      message.replace(at, quoted.size(), fmt::format("'{}'", name));
    throw bad_request(message, name);
  }
}

void read_options(const Fields& fields, Json& request) {
  static const Json kNothing = Json::object();
  const Json* options = fields.object("options");
  const Fields inner(options == nullptr ? kNothing : *options, "options.");
  std::vector<std::string_view> known(kOfLoading.begin(), kOfLoading.end());
  for (const auto& [name, own] : kOptions) {
    known.push_back(name);
    if (const Json* value = inner.find(name)) request[own] = *value;
  }
  // Values that change nothing are no demand.
  for (const auto& [name, off] : {std::pair{"tfs_z", 1}, {"repeat_last_n", -1}}) {
    known.push_back(name);
    if (const auto value = inner.number(name, -1e9, 1e9); value && *value != off)
      inner.fail(name, fmt::format("is not supported; leave it out, or say {}", off));
  }
  known.push_back("num_keep");
  inner.refuse_others(known);
  if (fields.flag("shift").value_or(false)) {
    request["context_shift"] = true;
    if (const auto kept = inner.integer("num_keep", -1, 1 << 30)) request["n_keep"] = *kept;
  }
  // -1 and -2 ask for as many as there is room for.
  if (const auto most = inner.integer("num_predict", -2, 1 << 30); most && *most < 0)
    request.erase("max_tokens");
}

void read_format(const Fields& fields, Json& request) {
  const Json* format = fields.find("format");
  if (format == nullptr || (format->is_string() && format->get_ref<const std::string&>().empty())) return;
  if (format->is_string() && *format != "json") fields.fail("format", "must be json or a schema");
  if (format->is_string())
    request["response_format"] = {{"type", "json_object"}};
  else if (format->is_object())
    request["json_schema"] = *format;
  else
    fields.fail("format", "must be json or a schema");
}

void read_think(const Fields& fields, Json& request) {
  const Json* think = fields.find("think");
  if (think == nullptr) return;
  if (think->is_boolean()) {
    request["chat_template_kwargs"] = {{"enable_thinking", *think}};
  } else if (think->is_string()) {
    request["chat_template_kwargs"] = {{"enable_thinking", true}};
    request["reasoning_effort"] = *think;
  } else {
    fields.fail("think", "must be true, false or how hard");
  }
}

Json read_ollama_message(const Fields& message) {
  Json result{{"role", message.text("role").value_or("")}, {"content", message.text("content").value_or("")}};
  if (const Json* images = message.list("images", 1 << 20); images != nullptr && !images->empty())
    message.fail("images", "are not read: this model reads text alone");
  if (const auto thinking = message.text("thinking")) result["reasoning_content"] = *thinking;
  if (const auto name = message.text("tool_name")) result["name"] = *name;
  if (const auto id = message.text("tool_call_id")) result["tool_call_id"] = *id;
  if (const Json* calls = message.find("tool_calls")) result["tool_calls"] = *calls;
  return result;
}

/// What both paths have.
Json begin_request(const Fields& fields, OllamaRequest& request) {
  request.model = fields.text("model").value_or("");
  // Names may end in a tag; here there is one of each.
  constexpr std::string_view kTag = ":latest";
  if (request.model.ends_with(kTag)) request.model.resize(request.model.size() - kTag.size());
  request.stream = fields.flag("stream").value_or(true);
  Json result{{"stream", request.stream}};
  if (!request.model.empty()) result["model"] = request.model;
  read_options(fields, result);
  read_format(fields, result);
  return result;
}

}  // namespace

OllamaRequest read_ollama_chat(const Json& body, const ServeLimits& limits) {
  const Fields fields(body);
  fields.refuse_others({"model", "messages", "tools", "format", "options", "stream", "keep_alive", "think",
                        "truncate", "shift"});
  OllamaRequest request;
  Json chat = begin_request(fields, request);
  const Json* messages = fields.list("messages", limits.max_messages);
  if (messages == nullptr || messages->empty()) return request;
  read_think(fields, chat);
  chat["messages"] = Json::array();
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    if (!(*messages)[i].is_object()) throw bad_request(fmt::format("'{}' must be an object", path), path);
    chat["messages"].push_back(read_ollama_message(Fields((*messages)[i], path + ".")));
  }
  // An answer that the last message has begun is gone on with, as there.
  const Json& last = chat["messages"].back();
  if (last["role"] == "assistant" && !last.contains("tool_calls") && has_text(last["content"]))
    chat["continue_final_message"] = true;
  if (const Json* tools = fields.find("tools")) chat["tools"] = *tools;
  // What is said first goes by default there.
  if (fields.flag("truncate").value_or(true)) chat["truncation"] = "auto";
  request.asked = read_renamed(read_chat_request, chat, limits);
  return request;
}

OllamaRequest read_ollama_generate(const Json& body, const ServeLimits& limits) {
  const Fields fields(body);
  fields.refuse_others({"model", "prompt", "suffix", "images", "system", "raw", "format", "options", "stream",
                        "keep_alive", "think", "truncate", "shift"});
  OllamaRequest request;
  request.chat = false;
  Json asked = begin_request(fields, request);
  const std::string prompt = fields.text("prompt").value_or("");
  const auto system = fields.text("system");
  if (const auto suffix = fields.text("suffix"); suffix && !suffix->empty())
    fields.fail("suffix", "is not supported: the model continues texts");
  if (const Json* images = fields.list("images", 1 << 20); images != nullptr && !images->empty())
    fields.fail("images", "are not read: this model reads text alone");
  if (prompt.empty()) return request;
  if (fields.flag("raw").value_or(false)) {
    if (system) fields.fail("system", "cannot be said in a raw prompt");
    asked["prompt"] = prompt;
    const bool says_length = asked.contains("max_tokens");
    auto completion = read_renamed(read_completion_request, asked, limits);
    // The service knows for how many there is room, and where texts end whose context shifts.
    if (!says_length) completion.options.max_tokens.reset();
    request.asked = std::move(completion);
    return request;
  }
  read_think(fields, asked);
  asked["messages"] = Json::array();
  if (system) asked["messages"].push_back({{"role", "system"}, {"content", *system}});
  asked["messages"].push_back({{"role", "user"}, {"content", prompt}});
  request.asked = read_renamed(read_chat_request, asked, limits);
  return request;
}

}  // namespace caldera::serve
