#include "lm/serve/service/message_writer.h"

#include <fmt/format.h>

#include "lm/serve/service/replies.h"

namespace caldera::serve {
namespace {

std::string named_event(const Json& data) {
  return fmt::format("event: {}\n{}", data["type"].get<std::string>(), server_event(data));
}

Json arguments_of(const ToolCall& call) {
  Json arguments = Json::parse(call.arguments, nullptr, false);
  return arguments.is_object() ? arguments : Json::object();
}

Json usage_of(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens}};
}

Json empty_block(const char* type, const char* field) {
  Json block{{"type", type}, {field, ""}};
  if (std::string_view(type) == "thinking") block["signature"] = "";
  return block;
}

}  // namespace

MessageWriter::MessageWriter(std::string model, std::int64_t prompt_tokens)
    : id_("msg_" + random_id()), model_(std::move(model)), prompt_tokens_(prompt_tokens) {}

Json MessageWriter::head() const {
  return {{"id", id_},           {"type", "message"},      {"role", "assistant"},     {"model", model_},
          {"content", content_}, {"stop_reason", nullptr}, {"stop_sequence", nullptr}};
}

void MessageWriter::append(const char* type, const char* field, const std::string& text) {
  if (text.empty()) return;
  if (content_.empty() || content_.back()["type"] != type) content_.push_back(empty_block(type, field));
  Json& written = content_.back()[field];
  written = written.get<std::string>() + text;
}

void MessageWriter::note_end(const Delta& delta) {
  if (delta.finish == "length") stop_reason_ = "max_tokens";
  if (delta.finish == "tool_calls") stop_reason_ = "tool_use";
  if (delta.finish != "stop" || delta.stop.empty()) return;
  stop_reason_ = "stop_sequence";
  stop_sequence_ = delta.stop;
}

void MessageWriter::add(const Delta& delta) {
  require_goes_on(delta);
  append("thinking", "thinking", delta.reasoning);
  append("text", "text", delta.text);
  for (const ToolCall& call : delta.calls)
    content_.push_back({{"type", "tool_use"},
                        {"id", "toolu_" + random_id()},
                        {"name", call.name},
                        {"input", arguments_of(call)}});
  note_end(delta);
}

Json MessageWriter::whole(const Usage& usage) const {
  Json message = head();
  message["stop_reason"] = stop_reason_;
  message["stop_sequence"] = stop_sequence_;
  message["usage"] = usage_of(usage);
  return message;
}

std::string MessageWriter::events(const Delta& delta) {
  if (failed_) return {};
  std::string out = begin(delta);
  if (failed_) return out;
  out += piece("thinking", "thinking", delta.reasoning);
  out += piece("text", "text", delta.text);
  for (const ToolCallPiece& one : delta.pieces) out += call_piece(one);
  for (std::size_t i = 0; i < delta.calls.size(); ++i)
    if (i >= delta.told.size() || !delta.told[i]) out += call(delta.calls[i]);
  note_end(delta);
  return out;
}

/// The message's beginning, before the first event; or the error of a text that failed.
std::string MessageWriter::begin(const Delta& delta) {
  try {
    require_goes_on(delta);
  } catch (const ApiError& error) {
    failed_ = true;
    return named_event(message_error(error));
  }
  if (std::exchange(begun_, true)) return {};
  Json message = head();
  message["usage"] = usage_of({.prompt_tokens = prompt_tokens_});
  return named_event({{"type", "message_start"}, {"message", std::move(message)}});
}

std::string MessageWriter::piece(const char* type, const char* field, const std::string& text) {
  if (text.empty()) return {};
  std::string out;
  if (open_ != type) {
    out += close_block();
    open_ = type;
    out += named_event(
        {{"type", "content_block_start"}, {"index", blocks_}, {"content_block", empty_block(type, field)}});
  }
  return out + named_event({{"type", "content_block_delta"},
                            {"index", blocks_},
                            {"delta", {{"type", fmt::format("{}_delta", type)}, {field, text}}}});
}

std::string MessageWriter::call_piece(const ToolCallPiece& piece) {
  std::string out;
  if (piece.begins) {
    out = close_block();
    open_ = "tool_use";
    out += named_event({{"type", "content_block_start"},
                        {"index", blocks_},
                        {"content_block",
                         {{"type", "tool_use"},
                          {"id", "toolu_" + random_id()},
                          {"name", piece.name},
                          {"input", Json::object()}}}});
  }
  if (!piece.arguments.empty())
    out += named_event({{"type", "content_block_delta"},
                        {"index", blocks_},
                        {"delta", {{"type", "input_json_delta"}, {"partial_json", piece.arguments}}}});
  return out;
}

std::string MessageWriter::call(const ToolCall& call) {
  return call_piece({true, call.name, dump(arguments_of(call))}) + close_block();
}

std::string MessageWriter::close_block() {
  if (open_.empty()) return {};
  open_.clear();
  return named_event({{"type", "content_block_stop"}, {"index", blocks_++}});
}

std::string MessageWriter::end(const Usage& usage) {
  if (failed_) return {};
  std::string out = begin({}) + close_block();
  out += named_event({{"type", "message_delta"},
                      {"delta", {{"stop_reason", stop_reason_}, {"stop_sequence", stop_sequence_}}},
                      {"usage", usage_of(usage)}});
  return out + named_event({{"type", "message_stop"}});
}

Json message_error(const ApiError& error) {
  const auto type = [&]() -> const char* {
    switch (error.status()) {
      case 401:
        return "authentication_error";
      case 403:
        return "permission_error";
      case 404:
        return "not_found_error";
      case 413:
        return "request_too_large";
      case 429:
        return "rate_limit_error";
      case 503:
        return "overloaded_error";
      default:
        return error.status() < 500 ? "invalid_request_error" : "api_error";
    }
  };
  return {{"type", "error"}, {"error", {{"type", type()}, {"message", error.what()}}}};
}

}  // namespace caldera::serve
