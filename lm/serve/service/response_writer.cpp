#include "lm/serve/service/response_writer.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "lm/serve/service/replies.h"

namespace caldera::serve {
namespace {

Json response_usage(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

}  // namespace

ResponseWriter::ResponseWriter(std::string model, Json told, bool logprobs)
    : id_("resp_" + random_id()),
      model_(std::move(model)),
      created_(make_head({}, true, false).created),
      told_(std::move(told)),
      logprobs_(logprobs) {}

Json ResponseWriter::response(const char* status) const {
  Json result{
      {"id", id_},           {"object", "response"}, {"created_at", created_},       {"status", status},
      {"background", false}, {"error", nullptr},     {"incomplete_details", nullptr}};
  if (cut_ && std::string_view(status) == "incomplete")
    result["incomplete_details"] = {{"reason", "max_output_tokens"}};
  result["model"] = model_;
  result["output"] = output_;
  result["previous_response_id"] = nullptr;
  result["store"] = false;
  for (const auto& [name, value] : told_.items()) result[name] = value;
  result["usage"] = nullptr;
  return result;
}

/// The content of the item that is being written.
Json ResponseWriter::part() const {
  if (kind_ == Item::reasoning) return {{"type", "reasoning_text"}, {"text", text_}};
  Json result{{"type", "output_text"}, {"text", text_}, {"annotations", Json::array()}};
  result["logprobs"] = lines_;
  return result;
}

Json ResponseWriter::item(bool complete) const {
  const char* status = !complete ? "in_progress" : cut_ ? "incomplete" : "completed";
  Json content = Json::array();
  if (complete && kind_ != Item::call) content.push_back(part());
  if (kind_ == Item::reasoning)
    return {{"id", item_id_},
            {"type", "reasoning"},
            {"summary", Json::array()},
            {"content", std::move(content)},
            {"status", status}};
  if (kind_ == Item::call)
    return {{"id", item_id_},
            {"type", "function_call"},
            {"call_id", "call_" + item_id_.substr(3)},
            {"name", call_.name},
            {"arguments", complete ? call_.arguments : ""},
            {"status", status}};
  return {{"id", item_id_},
          {"type", "message"},
          {"status", status},
          {"role", "assistant"},
          {"content", std::move(content)}};
}

std::string ResponseWriter::event(const char* type, const Json& data) {
  Json all{{"type", type}, {"sequence_number", sequence_++}};
  all.update(data);
  return fmt::format("event: {}\n{}", type, server_event(all));
}

std::string ResponseWriter::open(Item kind) {
  if (kind_ == kind && kind != Item::call) return {};
  std::string out = close();
  kind_ = kind;
  item_id_ = (kind == Item::reasoning ? "rs_" : kind == Item::message ? "msg_" : "fc_") + random_id();
  out += event("response.output_item.added", {{"output_index", output_.size()}, {"item", item(false)}});
  if (kind != Item::call)
    out += event(
        "response.content_part.added",
        {{"item_id", item_id_}, {"output_index", output_.size()}, {"content_index", 0}, {"part", part()}});
  return out;
}

std::string ResponseWriter::close() {
  if (kind_ == Item::none) return {};
  std::string out;
  Json place{{"item_id", item_id_}, {"output_index", output_.size()}};
  if (kind_ == Item::call) {
    place["name"] = call_.name;
    place["arguments"] = call_.arguments;
    out += event("response.function_call_arguments.done", place);
  } else {
    place["content_index"] = 0;
    Json text = place;
    text["text"] = text_;
    if (kind_ == Item::message) text["logprobs"] = lines_;
    out += event(kind_ == Item::message ? "response.output_text.done" : "response.reasoning_text.done", text);
    place["part"] = part();
    out += event("response.content_part.done", place);
  }
  out += event("response.output_item.done", {{"output_index", output_.size()}, {"item", item(true)}});
  output_.push_back(item(true));
  kind_ = Item::none;
  text_.clear();
  lines_ = Json::array();
  return out;
}

std::string ResponseWriter::piece(Item kind, const std::string& text) {
  if (text.empty()) return {};
  std::string out = open(kind);
  text_ += text;
  Json data{{"item_id", item_id_}, {"output_index", output_.size()}, {"content_index", 0}, {"delta", text}};
  if (kind == Item::message) {
    for (const Json& line : pending_) lines_.push_back(line);
    data["logprobs"] = std::exchange(pending_, Json::array());
  }
  return out +
         event(kind == Item::message ? "response.output_text.delta" : "response.reasoning_text.delta", data);
}

std::string ResponseWriter::call_piece(const ToolCallPiece& piece) {
  std::string out;
  if (piece.begins) {
    out = close();
    call_ = {piece.name, {}};
    out += open(Item::call);
  }
  call_.arguments += piece.arguments;
  if (!piece.arguments.empty())
    out += event("response.function_call_arguments.delta",
                 {{"item_id", item_id_}, {"output_index", output_.size()}, {"delta", piece.arguments}});
  return out;
}

std::string ResponseWriter::call(const ToolCall& call) {
  return call_piece({true, call.name, call.arguments}) + close();
}

/// The response's beginning, before the first event; or the error of a text that failed.
std::string ResponseWriter::begin(const Delta& delta) {
  std::string out;
  if (!std::exchange(begun_, true)) {
    out += event("response.created", {{"response", response("in_progress")}});
    out += event("response.in_progress", {{"response", response("in_progress")}});
  }
  try {
    require_goes_on(delta);
  } catch (const ApiError& error) {
    failed_ = true;
    Json failed = response("failed");
    failed["error"] = {{"code", "server_error"}, {"message", error.what()}};
    out += event("response.failed", {{"response", std::move(failed)}});
  }
  return out;
}

std::string ResponseWriter::events(const Delta& delta) {
  if (failed_) return {};
  std::string out = begin(delta);
  if (failed_) return out;
  cut_ = cut_ || delta.finish == "length";
  out += piece(Item::reasoning, delta.reasoning);
  if (logprobs_)
    for (Json& line : logprobs_json(delta.tokens)) pending_.push_back(std::move(line));
  out += piece(Item::message, delta.text);
  for (const ToolCallPiece& one : delta.pieces) out += call_piece(one);
  for (std::size_t i = 0; i < delta.calls.size(); ++i) {
    if (i >= delta.told.size() || !delta.told[i])
      out += call(delta.calls[i]);
    else if (i + 1 == delta.calls.size())
      out += close();  // its last piece has come
  }
  return out;
}

std::string ResponseWriter::end(const Usage& usage) {
  if (failed_) return {};
  std::string out = begin({}) + close();
  Json done = response(cut_ ? "incomplete" : "completed");
  done["usage"] = response_usage(usage);
  return out + event(cut_ ? "response.incomplete" : "response.completed", {{"response", std::move(done)}});
}

// A whole answer is what the events would have told.
void ResponseWriter::add(const Delta& delta) {
  require_goes_on(delta);
  events(delta);
  if (delta.ends()) close();
}

Json ResponseWriter::whole(const Usage& usage) const {
  Json result = response(cut_ ? "incomplete" : "completed");
  result["usage"] = response_usage(usage);
  return result;
}

}  // namespace caldera::serve
