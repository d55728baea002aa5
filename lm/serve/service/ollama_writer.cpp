#include "lm/serve/service/ollama_writer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <utility>

#include "lm/serve/service/replies.h"

namespace caldera::serve {
namespace {

std::string now_text() {
  const auto now = std::chrono::system_clock::now();
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() % 1000000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                     micros);
}

Json ollama_call(const ToolCall& call, std::size_t index) {
  Json arguments = Json::parse(call.arguments, nullptr, false);
  if (!arguments.is_object()) arguments = Json::object();
  return {{"id", "call_" + random_id()},
          {"function", {{"index", index}, {"name", call.name}, {"arguments", std::move(arguments)}}}};
}

std::int64_t nanoseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

Json OllamaWriter::line(const Delta& delta) const {
  Json result{{"model", model_}, {"created_at", now_text()}};
  if (!chat_) {
    result["response"] = delta.text;
    if (!delta.reasoning.empty()) result["thinking"] = delta.reasoning;
  } else {
    Json message{{"role", "assistant"}, {"content", delta.text}};
    if (!delta.reasoning.empty()) message["thinking"] = delta.reasoning;
    for (std::size_t i = 0; i < delta.calls.size(); ++i)
      message["tool_calls"].push_back(ollama_call(delta.calls[i], i));
    result["message"] = std::move(message);
  }
  result["done"] = false;
  return result;
}

void OllamaWriter::note(const Delta& delta) {
  if (!first_ && delta.shows()) first_ = Clock::now();
  if (delta.finish == "length") reason_ = "length";
}

Json OllamaWriter::finished(Json last, const Usage& usage) const {
  const Clock::time_point now = Clock::now();
  const Clock::time_point first = first_.value_or(now);
  last["done"] = true;
  last["done_reason"] = reason_;
  last["total_duration"] = nanoseconds(now - begin_);
  last["load_duration"] = 0;
  last["prompt_eval_count"] = usage.prompt_tokens;
  last["prompt_eval_duration"] = nanoseconds(first - begin_);
  last["eval_count"] = usage.completion_tokens;
  last["eval_duration"] = nanoseconds(now - first);
  return last;
}

void OllamaWriter::add(const Delta& delta) {
  require_goes_on(delta);
  note(delta);
  all_.text += delta.text;
  all_.reasoning += delta.reasoning;
  all_.calls.insert(all_.calls.end(), delta.calls.begin(), delta.calls.end());
}

Json OllamaWriter::whole(const Usage& usage) const { return finished(line(all_), usage); }

std::string OllamaWriter::events(const Delta& delta) {
  if (failed_) return {};
  try {
    require_goes_on(delta);
  } catch (const ApiError& error) {
    failed_ = true;
    return dump(ollama_error(error)) + "\n";
  }
  note(delta);
  return delta.shows() ? dump(line(delta)) + "\n" : std::string();
}

std::string OllamaWriter::end(const Usage& usage) {
  return failed_ ? std::string() : dump(finished(line({}), usage)) + "\n";
}

std::string OllamaWriter::silence() const { return dump(line({})) + "\n"; }

Json ollama_loaded(const std::string& model, bool chat) {
  Json result{{"model", model}, {"created_at", now_text()}};
  if (chat)
    result["message"] = {{"role", "assistant"}, {"content", ""}};
  else
    result["response"] = "";
  result["done"] = true;
  result["done_reason"] = "load";
  return result;
}

Json ollama_tags(const std::vector<std::string>& names, std::int64_t created) {
  Json models = Json::array();
  const std::string modified =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(created)));
  for (const std::string& name : names)
    models.push_back({{"name", name},
                      {"model", name},
                      {"modified_at", modified},
                      {"size", 0},
                      {"digest", ""},
                      {"details",
                       {{"parent_model", ""},
                        {"format", ""},
                        {"family", ""},
                        {"families", Json::array()},
                        {"parameter_size", ""},
                        {"quantization_level", ""}}}});
  return {{"models", std::move(models)}};
}

Json ollama_error(const ApiError& error) { return {{"error", error.what()}}; }

}  // namespace caldera::serve
