// Sequence: makes the text of one answer from the tokens of an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lm/chat/thinking.h"
#include "lm/generate/batch/batch_generator.h"
#include "lm/serve/service/delta.h"
#include "lm/tokenizers/tokenizer.h"

namespace caldera::serve {

struct SequenceOptions {
  std::int64_t index = 0;
  std::optional<ToolFormat> tools;  ///< look for calls
  bool streams_calls = false;       ///< calls, whose form is held, are told as they are written
  bool shows_special = false;       ///< special tokens are part of the text
  bool shows_stop = false;          ///< and so is a stop string
  std::string echo;                 ///< the text begins with it
  /// The prompt, where its tokens are reported.
  std::vector<std::int32_t> scored_prompt = {};
  /// Sets apart what the model thinks; made of the prompt, which may have opened the thinking.
  std::optional<ThinkingSplitter> thinking;
};

/// Says how the answer's text is made of tokens: marks of calls and of thinking are special tokens in some
/// vocabularies, and part of the text that a Sequence reads.
TextOptions text_options(std::shared_ptr<const Tokenizer> tokenizer, const SequenceOptions& options);

/// Tells thinking from answer, and finds calls of tools, in the text of an engine's events. One thread at a
/// time.
class Sequence {
 public:
  /// The tokenizer, which tells the texts of single tokens, must outlive this.
  Sequence(const Tokenizer& tokenizer, SequenceOptions options);

  /// Takes an event and returns what it adds. A delta with a `finish`, an error or `cancelled` is the last:
  /// the engine need not go on.
  Delta take(const TokenEvent& event);

 private:
  void split(const std::string& shown, Delta& delta);
  void add_parts(const std::vector<ThinkingPart>& parts, Delta& delta);
  void add_answer(const std::string& text, Delta& delta);
  static void add_calls(ToolCallParser::Output output, Delta& delta);
  void finish(const std::string& reason, Delta& delta);
  void begin(const TokenEvent& event, Delta& delta);
  void take_lines(Delta& delta, const std::string& shown);
  TokenLine line_of(const TokenReport& report) const;

  const Tokenizer& tokenizer_;
  SequenceOptions options_;
  std::optional<ToolCallParser> calls_;
  std::vector<TokenLine> lines_;  // of tokens whose text is held back
  bool begun_ = false;            // the first event has come
  bool aligned_ = false;          // the first piece of text has come
};

}  // namespace caldera::serve
