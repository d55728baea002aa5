#include "lm/chat/tools/tool_payloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_nesting.h"

namespace caldera {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostDepth = 64;

// JSON in one line; bytes that are not UTF-8 become U+FFFD.
std::string text_of(const Json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kToolBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kToolBlanks) + 1 - begin);
}

std::optional<Json> parse_json(std::string_view text) {
  if (detail::nests_deeper(text, kMostDepth)) return std::nullopt;
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

std::optional<ToolCall> call_of(const Json& object, std::string_view arguments_name) {
  if (!object.is_object()) return std::nullopt;
  const auto name = object.find("name");
  if (name == object.end() || !name->is_string()) return std::nullopt;
  auto arguments = object.find(arguments_name);
  if (arguments == object.end()) arguments = object.find("arguments");
  if (arguments == object.end()) arguments = object.find("parameters");
  ToolCall call{name->get<std::string>(), "{}"};
  if (arguments != object.end() && arguments->is_object()) call.arguments = text_of(*arguments);
  if (arguments != object.end() && arguments->is_string()) call.arguments = arguments->get<std::string>();
  return call;
}

// Objects and lists of calls, one after another, with blanks, commas or semicolons between them.
std::vector<ToolCall> read_json_calls(std::string_view text, const ToolFormat& format) {
  std::vector<ToolCall> calls;
  while (!(text = trim(text)).empty()) {
    if (!calls.empty() && (text.front() == ';' || text.front() == ',')) text = trim(text.substr(1));
    const std::size_t end = detail::json_end(text, kMostDepth);
    if (end == std::string_view::npos) return {};
    const std::optional<Json> value = parse_json(text.substr(0, end));
    if (!value) return {};
    const Json list = value->is_array() ? *value : Json::array({*value});
    for (const Json& entry : list) {
      const std::optional<ToolCall> call = call_of(entry, format.arguments);
      if (!call) return {};
      calls.push_back(*call);
    }
    text.remove_prefix(end);
  }
  return calls;
}

bool is_json(std::string_view text) { return text.starts_with('{') || text.starts_with('['); }

// NAME[ARGS]{...}, where the mark between them may be left out; several begin with the opening mark each. Or
// a list of objects.
std::vector<ToolCall> read_named_calls(std::string_view text, const ToolFormat& format) {
  if (is_json(text)) return read_json_calls(text, format);
  constexpr std::string_view kArguments = "[ARGS]";
  std::vector<ToolCall> calls;
  while (!(text = trim(text)).empty()) {
    if (text.starts_with(format.open)) text = trim(text.substr(format.open.size()));
    const std::size_t begin = text.find_first_of("[{");
    if (begin == std::string_view::npos || begin == 0) return {};
    const std::string_view name = trim(text.substr(0, begin));
    text.remove_prefix(begin);
    if (text.starts_with(kArguments)) text = trim(text.substr(kArguments.size()));
    const std::size_t end = detail::json_end(text, kMostDepth);
    if (end == std::string_view::npos) return {};
    const std::optional<Json> arguments = parse_json(text.substr(0, end));
    if (!arguments || !arguments->is_object()) return {};
    calls.push_back({std::string(name), text_of(*arguments)});
    text.remove_prefix(end);
  }
  return calls;
}

// What stands between two marks; moves `text` behind the second.
std::optional<std::string_view> between(std::string_view& text, std::string_view open,
                                        std::string_view close) {
  const std::size_t begin = text.find(open);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = text.find(close, begin + open.size());
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view inner = text.substr(begin + open.size(), end - begin - open.size());
  text.remove_prefix(end + close.size());
  return inner;
}

// <function=NAME><parameter=KEY>VALUE</parameter>...</function>, or objects.
std::vector<ToolCall> read_xml_calls(std::string_view text, const ToolFormat& format) {
  if (is_json(text)) return read_json_calls(text, format);
  std::vector<ToolCall> calls;
  while (auto function = between(text, "<function=", "</function>")) {
    const std::size_t name_end = function->find('>');
    if (name_end == std::string_view::npos) return {};
    const std::string_view name = trim(function->substr(0, name_end));
    function->remove_prefix(name_end + 1);
    Json arguments = Json::object();
    while (auto parameter = between(*function, "<parameter=", "</parameter>")) {
      const std::size_t key_end = parameter->find('>');
      if (key_end == std::string_view::npos) return {};
      const std::string key(trim(parameter->substr(0, key_end)));
      std::string_view value = parameter->substr(key_end + 1);
      if (value.starts_with('\n')) value.remove_prefix(1);
      if (value.ends_with('\n')) value.remove_suffix(1);
      // Values are written as they are where they are texts, as JSON otherwise.
      const std::optional<Json> parsed = parse_json(value);
      arguments[key] = parsed && !parsed->is_string() ? *parsed : Json(std::string(value));
    }
    calls.push_back({std::string(name), text_of(arguments)});
  }
  return calls;
}

constexpr std::string_view kMessage = "<|message|>";

// NAME<|channel|>commentary json<|message|>{...}: one call, which a token ends that ends the text.
std::vector<ToolCall> read_channel_call(std::string_view text, const ToolFormat& /*format*/) {
  const std::string_view name = text.substr(0, text.find_first_of(" <"));
  const std::size_t begin = text.find(kMessage);
  if (name.empty() || begin == std::string_view::npos) return {};
  text = trim(text.substr(begin + kMessage.size()));
  const std::size_t end = detail::json_end(text, kMostDepth);
  if (end == std::string_view::npos) return {};
  const std::optional<Json> arguments = parse_json(text.substr(0, end));
  if (!arguments || !arguments->is_object()) return {};
  return {{std::string(name), text_of(*arguments)}};
}

std::string object_head(std::string_view name, const ToolFormat& format) {
  return fmt::format("{{\"name\": {}, \"{}\": ", name, format.arguments);
}

std::optional<detail::ToolCallFrame> object_frame(std::string_view name, const ToolFormat& format) {
  const char* const blank = format.close.empty() ? "" : "\n";
  return {{fmt::format("{}{}{}", format.open, blank, object_head(name, format)),
           fmt::format("}}{}{}", blank, format.close)}};
}

std::optional<detail::ToolCallFrame> list_frame(std::string_view name, const ToolFormat& format) {
  return {{fmt::format("{}[{}", format.open, object_head(name, format)), fmt::format("}}]{}", format.close)}};
}

// As the template writes calls that have been made. The name, given as JSON, has no escapes: letters, digits,
// _ and - alone.
std::optional<detail::ToolCallFrame> channel_frame(std::string_view name, const ToolFormat& format) {
  return {{fmt::format(" {}{}<|channel|>commentary json{}", format.open, name.substr(1, name.size() - 2),
                       kMessage),
           ""}};
}

std::vector<detail::ToolCallsForm> channel_forms(const ToolFormat& /*format*/) {
  std::vector<detail::ToolCallsForm> forms;
  for (const char* channel : {" <|constrain|>json", "<|channel|>commentary json",
                              "<|channel|>commentary <|constrain|>json", " json"})
    forms.push_back({"", "", channel + std::string(kMessage), "", "", "", false});
  return forms;
}

std::optional<detail::ToolCallFrame> no_frame(std::string_view /*name*/, const ToolFormat& /*format*/) {
  return std::nullopt;
}

std::vector<detail::ToolCallsForm> object_forms(const ToolFormat& format) {
  const std::string middle = fmt::format(", \"{}\": ", format.arguments);
  return {{"", "{\"name\": ", middle, "}", "", std::string(format.close)}};
}

std::vector<detail::ToolCallsForm> list_forms(const ToolFormat& format) {
  std::vector<detail::ToolCallsForm> forms = object_forms(format);
  forms[0].before = "[";
  forms[0].between = ", ";
  forms[0].after = "]" + forms[0].after;
  return forms;
}

std::vector<detail::ToolCallsForm> named_forms(const ToolFormat& format) {
  std::vector<detail::ToolCallsForm> forms = list_forms(format);
  forms.push_back({"", "", "[ARGS]", "", std::string(format.open), std::string(format.close), false});
  return forms;
}

std::vector<detail::ToolCallsForm> no_forms(const ToolFormat& /*format*/) { return {}; }

/// The kinds of payloads, by the names that rows of tool_formats.cpp have for them.
constexpr detail::ToolPayload kPayloads[] = {
    // {"name", "arguments"}, or several one after another
    {"call", read_json_calls, object_frame, object_forms},
    // a list of such objects, or one object
    {"calls", read_json_calls, list_frame, list_forms},
    // NAME[ARGS]{arguments}, or as "calls"
    {"named", read_named_calls, list_frame, named_forms},
    // <function=NAME><parameter=KEY>VALUE</parameter>...</function>, or as "call"
    {"xml", read_xml_calls, no_frame, no_forms},
    // NAME<|channel|>commentary json<|message|>{arguments}
    {"channel", read_channel_call, channel_frame, channel_forms},
};

}  // namespace

const detail::ToolPayload& detail::payload_of(const ToolFormat& format) {
  const auto* const found = std::ranges::find(kPayloads, format.payload, &ToolPayload::name);
  if (found == std::ranges::end(kPayloads))
    throw ValueError(fmt::format("tools: the format {} has a payload '{}', which is not known", format.name,
                                 format.payload));
  return *found;
}

std::vector<ToolCall> parse_tool_calls(std::string_view text, const ToolFormat& format) {
  return detail::payload_of(format).read(trim(text), format);
}

}  // namespace caldera
