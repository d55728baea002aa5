#include "lm/serve/service/sequence.h"

#include <iterator>
#include <utility>

namespace caldera::serve {

namespace {

std::string text_of(const Tokenizer& tokenizer, std::int32_t id) { return tokenizer.decode({&id, 1}, false); }

/// The bytes of a token; special tokens have names.
std::string bytes_of(const Tokenizer& tokenizer, std::int32_t id) {
  return tokenizer.is_special(id) ? text_of(tokenizer, id) : tokenizer.token_bytes(id);
}

}  // namespace

TextOptions text_options(std::shared_ptr<const Tokenizer> tokenizer, const SequenceOptions& options) {
  TextOptions text;
  text.tokenizer = std::move(tokenizer);
  // Without tools only the marks of thinking are wanted of the special tokens.
  if (options.tools || options.shows_special)
    text.keeps_special = [](std::int32_t) { return true; };
  else if (options.thinking)
    text.keeps_special = [tokenizer = text.tokenizer.get()](std::int32_t id) {
      return ThinkingSplitter::reads(text_of(*tokenizer, id));
    };
  return text;
}

Sequence::Sequence(const Tokenizer& tokenizer, SequenceOptions options)
    : tokenizer_(tokenizer), options_(std::move(options)) {
  if (options_.tools) calls_.emplace(*options_.tools, options_.streams_calls);
}

Delta Sequence::take(const TokenEvent& event) {
  Delta delta;
  delta.index = options_.index;
  const bool is_stop_token = event.finish == FinishReason::stop && !event.stop;
  const auto thinking = [&] { return options_.thinking && options_.thinking->thinking(); };
  const bool thought = thinking();
  if (!std::exchange(begun_, true)) begin(event, delta);
  if (event.report && !is_stop_token) lines_.push_back(line_of(*event.report));
  std::string shown = event.text;
  if (options_.shows_stop) shown += event.stop.value_or("");
  if (!shown.empty()) {
    take_lines(delta, shown);
    split(shown, delta);
  }
  delta.thinking = event.id && !is_stop_token && (thought || thinking());
  if (event.stop) lines_.clear();
  delta.stop = event.stop.value_or("");
  if (event.finish == FinishReason::failed) {
    delta.error = event.error.empty() ? "the generation failed" : event.error;
  } else if (event.finish == FinishReason::cancelled) {
    delta.cancelled = true;
  } else if (event.finish) {
    finish(*event.finish == FinishReason::length ? "length" : "stop", delta);
  }
  return delta;
}

/// Adds the prompt, where it is part of the text.
void Sequence::begin(const TokenEvent& event, Delta& delta) {
  delta.text = options_.echo;
  if (options_.scored_prompt.empty()) return;
  TokenLine first;
  first.token.text = bytes_of(tokenizer_, options_.scored_prompt.front());
  first.known = false;
  first.shown = !tokenizer_.is_special(options_.scored_prompt.front());
  lines_.push_back(std::move(first));
  for (const TokenReport& report : event.prompt_reports) lines_.push_back(line_of(report));
  take_lines(delta, options_.echo);
}

/// Tells what is known of the tokens of a piece of text.
void Sequence::take_lines(Delta& delta, const std::string& shown) {
  const bool is_first = !std::exchange(aligned_, true);
  for (TokenLine& line : lines_) {
    if (!is_first || !line.shown || line.token.text.empty()) continue;
    // Many tokenizers leave out the space before a text's first word.
    if (line.token.text.starts_with(' ') && !shown.starts_with(' ')) line.token.text.erase(0, 1);
    break;
  }
  delta.tokens.insert(delta.tokens.end(), std::make_move_iterator(lines_.begin()),
                      std::make_move_iterator(lines_.end()));
  lines_.clear();
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
  add_calls(calls_->push(text), delta);
}

void Sequence::add_calls(ToolCallParser::Output output, Delta& delta) {
  delta.text += output.content;
  delta.calls.insert(delta.calls.end(), output.calls.begin(), output.calls.end());
  delta.told.insert(delta.told.end(), output.told.begin(), output.told.end());
  delta.pieces.insert(delta.pieces.end(), std::make_move_iterator(output.pieces.begin()),
                      std::make_move_iterator(output.pieces.end()));
}

void Sequence::finish(const std::string& reason, Delta& delta) {
  delta.finish = reason;
  delta.tokens.insert(delta.tokens.end(), lines_.begin(), lines_.end());
  lines_.clear();
  if (options_.thinking) add_parts(options_.thinking->finish(), delta);
  if (!calls_) return;
  add_calls(calls_->finish(), delta);
  if (calls_->has_calls()) delta.finish = "tool_calls";
}

TokenLine Sequence::line_of(const TokenReport& report) const {
  const auto told = [&](const TokenLogProbability& token) {
    return TokenText{bytes_of(tokenizer_, token.id), token.log_probability};
  };
  TokenLine line;
  line.token = told(report.drawn);
  line.shown = options_.shows_special || !tokenizer_.is_special(report.drawn.id);
  for (const TokenLogProbability& other : report.top) line.top.push_back(told(other));
  return line;
}

}  // namespace caldera::serve
