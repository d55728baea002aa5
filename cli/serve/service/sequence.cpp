#include "cli/serve/service/sequence.h"

#include <algorithm>

namespace caldera::serve {

Sequence::Sequence(const Tokenizer& tokenizer, SequenceOptions options, std::span<const std::int32_t> context)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      // Marks of calls are special tokens in some vocabularies.
      decoder_(tokenizer, !options_.tools),
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
    add_text(decoder_.push(*event.id), delta);
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

void Sequence::add_text(const std::string& text, Delta& delta) {
  const std::string shown = stop_.push(text);
  if (!shown.empty()) {
    delta.tokens.insert(delta.tokens.end(), lines_.begin(), lines_.end());
    lines_.clear();
  }
  if (!calls_) {
    delta.text += shown;
    return;
  }
  ToolCallParser::Output output = calls_->push(shown);
  delta.text += output.content;
  delta.calls.insert(delta.calls.end(), output.calls.begin(), output.calls.end());
}

void Sequence::finish(const std::string& reason, Delta& delta) {
  delta.finish = reason;
  if (!stop_.stopped()) {
    add_text(decoder_.finish(), delta);
    const std::string rest = stop_.stopped() ? std::string() : stop_.finish();
    if (calls_) {
      const ToolCallParser::Output output = calls_->push(rest);
      delta.text += output.content;
      delta.calls.insert(delta.calls.end(), output.calls.begin(), output.calls.end());
    } else {
      delta.text += rest;
    }
    delta.tokens.insert(delta.tokens.end(), lines_.begin(), lines_.end());
  }
  lines_.clear();
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
