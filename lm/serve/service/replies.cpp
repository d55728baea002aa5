#include "lm/serve/service/replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "lm/base/unicode/utf8.h"

namespace caldera::serve {
namespace {

// JSON has no -infinity: a token that is ruled out gets OpenAI's number for it.
double finite(double logprob) { return std::max(logprob, -9999.0); }

Json chat_token(const TokenText& token) {
  Json bytes = Json::array();
  for (const char c : token.text) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", token.text}, {"logprob", finite(token.logprob)}, {"bytes", std::move(bytes)}};
}

Json chat_logprobs(const std::vector<TokenLine>& lines) {
  return {{"content", logprobs_json(lines)}, {"refusal", nullptr}};
}

/// The text of a token where there are no bytes beside it: OpenAI writes "bytes:\xe2\x82" for what is not a
/// whole number of characters.
std::string legible(const std::string& bytes) {
  if (caldera::detail::is_utf8(bytes)) return bytes;
  std::string text = "bytes:";
  for (const char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

/// Tells tokens that begin at character `offset` of the text, which goes on behind them.
Json text_logprobs(const std::vector<TokenLine>& lines, std::size_t& offset) {
  Json result{{"tokens", Json::array()},
              {"token_logprobs", Json::array()},
              {"top_logprobs", Json::array()},
              {"text_offset", Json::array()}};
  for (const TokenLine& line : lines) {
    result["tokens"].push_back(legible(line.token.text));
    result["text_offset"].push_back(offset);
    const auto is_first_byte = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
    if (line.shown) offset += static_cast<std::size_t>(std::ranges::count_if(line.token.text, is_first_byte));
    if (!line.known) {
      result["token_logprobs"].push_back(nullptr);
      result["top_logprobs"].push_back(nullptr);
      continue;
    }
    result["token_logprobs"].push_back(finite(line.token.logprob));
    Json top = Json::object();
    // The most likely first: another token of the same text is not told. The one that stands there always is.
    for (const TokenText& other : line.top) top.emplace(legible(other.text), finite(other.logprob));
    top.emplace(legible(line.token.text), finite(line.token.logprob));
    result["top_logprobs"].push_back(std::move(top));
  }
  return result;
}

Json call_json(const ToolCall& call) {
  return {{"id", "call_" + random_id()},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Json logprobs_json(const std::vector<TokenLine>& lines) {
  Json content = Json::array();
  for (const TokenLine& line : lines) {
    Json entry = chat_token(line.token);
    entry["top_logprobs"] = Json::array();
    for (const TokenText& other : line.top) entry["top_logprobs"].push_back(chat_token(other));
    content.push_back(std::move(entry));
  }
  return content;
}

std::string random_id() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  return fmt::format("{:016x}{:08x}", engine(), static_cast<std::uint32_t>(engine()));
}

void require_goes_on(const Delta& delta) {
  if (!delta.error.empty()) throw server_error(delta.error);
  if (delta.cancelled) throw unavailable("the request was cancelled: it took too long, or the server stops");
}

ReplyHead make_head(const std::string& model, bool chat, bool logprobs) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {(chat ? "chatcmpl-" : "cmpl-") + random_id(), model,
          std::chrono::duration_cast<std::chrono::seconds>(now).count(), chat, logprobs};
}

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}}};
}

std::string server_event(const Json& data) { return "data: " + dump(data) + "\n\n"; }

Reply::Reply(const ReplyHead& head, std::size_t texts) : head_(head), texts_(texts) {}

void Reply::add(const Delta& delta) {
  require_goes_on(delta);
  Text& text = texts_[static_cast<std::size_t>(delta.index)];
  text.text += delta.text;
  text.reasoning += delta.reasoning;
  text.calls.insert(text.calls.end(), delta.calls.begin(), delta.calls.end());
  text.tokens.insert(text.tokens.end(), delta.tokens.begin(), delta.tokens.end());
  if (!delta.finish.empty()) text.finish = delta.finish;
}

Json Reply::json(const Usage& usage) const {
  Json choices = Json::array();
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const Text& text = texts_[i];
    Json choice{{"index", i}};
    if (head_.chat) {
      Json message{{"role", "assistant"}};
      message["content"] = text.text.empty() && !text.calls.empty() ? Json(nullptr) : Json(text.text);
      message["refusal"] = nullptr;
      if (!text.reasoning.empty()) message["reasoning_content"] = text.reasoning;
      for (const ToolCall& call : text.calls) message["tool_calls"].push_back(call_json(call));
      choice["message"] = std::move(message);
      choice["logprobs"] = head_.logprobs ? chat_logprobs(text.tokens) : Json(nullptr);
    } else {
      choice["text"] = text.text;
      std::size_t offset = 0;
      choice["logprobs"] = head_.logprobs ? text_logprobs(text.tokens, offset) : Json(nullptr);
    }
    choice["finish_reason"] = text_or_null(text.finish);
    choices.push_back(std::move(choice));
  }
  return {{"id", head_.id},
          {"object", head_.chat ? "chat.completion" : "text_completion"},
          {"created", head_.created},
          {"model", head_.model},
          {"choices", std::move(choices)},
          {"usage", usage_json(usage)}};
}

ChunkWriter::ChunkWriter(const ReplyHead& head, std::size_t texts, bool include_usage)
    : head_(head), texts_(texts), include_usage_(include_usage) {}

Json ChunkWriter::chunk() const {
  Json result{{"id", head_.id},
              {"object", head_.chat ? "chat.completion.chunk" : "text_completion"},
              {"created", head_.created},
              {"model", head_.model},
              {"choices", Json::array()}};
  if (include_usage_) result["usage"] = nullptr;
  return result;
}

std::string ChunkWriter::event(Json choice) const {
  Json result = chunk();
  result["choices"].push_back(std::move(choice));
  return server_event(result);
}

std::string ChunkWriter::events(const Delta& delta) {
  const auto index = static_cast<std::size_t>(delta.index);
  Text& text = texts_[index];
  if (!delta.error.empty()) return server_event(server_error(delta.error).json());
  if (delta.cancelled) return server_event(unavailable("the request was cancelled").json());
  std::string out;
  if (!head_.chat) {
    Json choice{{"index", index}, {"text", delta.text}};
    choice["logprobs"] = head_.logprobs && !delta.tokens.empty()
                             ? text_logprobs(delta.tokens, text.characters)
                             : Json(nullptr);
    choice["finish_reason"] = text_or_null(delta.finish);
    return event(std::move(choice));
  }
  const auto chat_event = [&](Json change, const std::string& finish, Json logprobs) {
    out += event({{"index", index},
                  {"delta", std::move(change)},
                  {"logprobs", std::move(logprobs)},
                  {"finish_reason", text_or_null(finish)}});
  };
  if (!text.begun) chat_event({{"role", "assistant"}, {"content", ""}}, "", nullptr);
  text.begun = true;
  Json logprobs = head_.logprobs && !delta.tokens.empty() ? chat_logprobs(delta.tokens) : Json(nullptr);
  if (!delta.reasoning.empty())
    chat_event({{"reasoning_content", delta.reasoning}}, "", std::exchange(logprobs, nullptr));
  if (!delta.text.empty() || !logprobs.is_null())
    chat_event({{"content", delta.text}}, "", std::move(logprobs));
  for (const ToolCallPiece& piece : delta.pieces) {
    Json entry{{"index", piece.begins ? text.calls++ : text.calls - 1}};
    if (piece.begins)
      entry.update(call_json({piece.name, ""}));
    else
      entry["function"] = {{"arguments", piece.arguments}};
    chat_event({{"tool_calls", Json::array({std::move(entry)})}}, "", nullptr);
  }
  for (std::size_t i = 0; i < delta.calls.size(); ++i) {
    if (i < delta.told.size() && delta.told[i]) continue;
    Json entry = call_json(delta.calls[i]);
    entry["index"] = text.calls++;
    chat_event({{"tool_calls", Json::array({std::move(entry)})}}, "", nullptr);
  }
  if (!delta.finish.empty()) chat_event(Json::object(), delta.finish, nullptr);
  return out;
}

std::string ChunkWriter::end(const Usage& usage) const {
  std::string out;
  if (include_usage_) {
    Json last = chunk();
    last["usage"] = usage_json(usage);
    out += server_event(last);
  }
  return out + "data: [DONE]\n\n";
}

}  // namespace caldera::serve
