#include "lm/serve/service/sequence.h"

#include <algorithm>

namespace caldera::serve {

Sequence::Sequence(const Tokenizer& tokenizer, SequenceOptions options, std::span<const std::int32_t> context)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      // Marks of calls and of thinking are special tokens in some vocabularies.
      decoder_(tokenizer, !options_.tools && !options_.thinking),
      stop_(options_.stop) {
  if (options_.tools) calls_.emplace(*options_.tools);
  if (!context.empty()) decoder_.prime(context);
}

Delta Sequence::take(const TokenEvent& event) {
  Delta delta;
  delta.index = options_.index;
  const bool ends_text = event.id && std::find(options_.stop_ids.begin(), options_.stop_ids.end(),
                                               *event.id) != options_.stop_ids.end();
  if (event.id && !ends_text) {
    if (options_.logprobs) lines_.push_back(line_of(event));
    const bool thought = options_.thinking && options_.thinking->thinking();
    add_text(decode(*event.id), delta);
    delta.thinking = thought || (options_.thinking && options_.thinking->thinking());
  }
  if (stop_.stopped() || ends_text) {
    finish("stop", delta);
  } else if (event.finish == FinishReason::failed) {
    delta.error = event.error.empty() ? "the generation failed" : event.error;
  } else if (event.finish == FinishReason::cancelled) {
    delta.cancelled = true;
  } else if (event.finish) {
    finish(*event.finish == FinishReason::length ? "length" : "stop", delta);
  }
  return delta;
}

// Without tools only the marks of thinking are wanted of the special tokens.
std::string Sequence::decode(std::int32_t id) {
  if (options_.thinking && !options_.tools && tokenizer_.is_special(id) &&
      !ThinkingSplitter::reads(text_of(id)))
    return {};
  return decoder_.push(id);
}

void Sequence::add_text(const std::string& text, Delta& delta) {
  const std::string shown = stop_.push(text);
  if (!shown.empty()) {
    delta.tokens.insert(delta.tokens.end(), lines_.begin(), lines_.end());
    lines_.clear();
  }
  split(shown, delta);
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
  if (!stop_.stopped()) {
    add_text(decoder_.finish(), delta);
    if (!stop_.stopped()) split(stop_.finish(), delta);
    delta.tokens.insert(delta.tokens.end(), lines_.begin(), lines_.end());
  }
  lines_.clear();
  if (options_.thinking) add_parts(options_.thinking->finish(), delta);
  if (!calls_) return;
  const ToolCallParser::Output output = calls_->finish();
  delta.text += output.content;
  delta.calls.insert(delta.calls.end(), output.calls.begin(), output.calls.end());
  if (calls_->has_calls()) delta.finish = "tool_calls";
}

TokenLine Sequence::line_of(const TokenEvent& event) const {
  TokenLine line{{text_of(*event.id), event.logprob}, {}};
  for (const TokenLogprob& other : event.top) line.top.push_back({text_of(other.id), other.logprob});
  return line;
}

std::string Sequence::text_of(std::int32_t id) const { return tokenizer_.decode({&id, 1}, false); }

}  // namespace caldera::serve
