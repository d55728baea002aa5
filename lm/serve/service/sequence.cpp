#include "lm/serve/service/sequence.h"

#include <utility>

namespace caldera::serve {

namespace {

std::string text_of(const Tokenizer& tokenizer, std::int32_t id) { return tokenizer.decode({&id, 1}, false); }

}  // namespace

TextOptions text_options(std::shared_ptr<const Tokenizer> tokenizer, const SequenceOptions& options) {
  TextOptions text;
  text.tokenizer = std::move(tokenizer);
  // Without tools only the marks of thinking are wanted of the special tokens.
  if (options.tools)
    text.keeps_special = [](std::int32_t) { return true; };
  else if (options.thinking)
    text.keeps_special = [tokenizer = text.tokenizer.get()](std::int32_t id) {
      return ThinkingSplitter::reads(text_of(*tokenizer, id));
    };
  return text;
}

Sequence::Sequence(const Tokenizer& tokenizer, SequenceOptions options)
    : tokenizer_(tokenizer), options_(std::move(options)) {
  if (options_.tools) calls_.emplace(*options_.tools);
}

Delta Sequence::take(const TokenEvent& event) {
  Delta delta;
  delta.index = options_.index;
  const bool is_stop_token = event.finish == FinishReason::stop && !event.stop;
  const auto thinking = [&] { return options_.thinking && options_.thinking->thinking(); };
  const bool thought = thinking();
  if (event.report && !is_stop_token) lines_.push_back(line_of(*event.report));
  if (!event.text.empty()) {
    delta.tokens = std::exchange(lines_, {});
    split(event.text, delta);
  }
  delta.thinking = event.id && !is_stop_token && (thought || thinking());
  if (event.stop) lines_.clear();
  if (event.finish == FinishReason::failed) {
    delta.error = event.error.empty() ? "the generation failed" : event.error;
  } else if (event.finish == FinishReason::cancelled) {
    delta.cancelled = true;
  } else if (event.finish) {
    finish(*event.finish == FinishReason::length ? "length" : "stop", delta);
  }
  return delta;
}

void Sequence::split(const std::string& shown, Delta& delta) {
  if (options_.thinking)
    add_parts(options_.thinking->push(shown), delta);
  else
    add_answer(shown, delta);
}

void Sequence::add_parts(const std::vector<ThinkingPart>& parts, Delta& delta) {
  for (const ThinkingPart& part : parts) {
    if (part.thinking)
      delta.reasoning += part.text;
    else
      add_answer(part.text, delta);
  }
}

void Sequence::add_answer(const std::string& text, Delta& delta) {
  if (!calls_) {
    delta.text += text;
    return;
  }
  const ToolCallParser::Output output = calls_->push(text);
  delta.text += output.content;
  delta.calls.insert(delta.calls.end(), output.calls.begin(), output.calls.end());
}

void Sequence::finish(const std::string& reason, Delta& delta) {
  delta.finish = reason;
  delta.tokens.insert(delta.tokens.end(), lines_.begin(), lines_.end());
  lines_.clear();
  if (options_.thinking) add_parts(options_.thinking->finish(), delta);
  if (!calls_) return;
  const ToolCallParser::Output output = calls_->finish();
  delta.text += output.content;
  delta.calls.insert(delta.calls.end(), output.calls.begin(), output.calls.end());
  if (calls_->has_calls()) delta.finish = "tool_calls";
}

TokenLine Sequence::line_of(const TokenReport& report) const {
  const auto told = [&](const TokenLogProbability& token) {
    return TokenText{text_of(tokenizer_, token.id), token.log_probability};
  };
  TokenLine line{told(report.drawn), {}};
  for (const TokenLogProbability& other : report.top) line.top.push_back(told(other));
  return line;
}

}  // namespace caldera::serve
