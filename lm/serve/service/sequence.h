// Sequence: makes the text of one answer from the tokens of an engine.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lm/chat/thinking.h"
#include "lm/generate/batch_generator.h"
#include "lm/generate/sampling/stop_text.h"
#include "lm/serve/service/delta.h"
#include "lm/tokenizers/stream_decoder.h"

namespace caldera::serve {

struct SequenceOptions {
  std::int64_t index = 0;
  std::vector<std::string> stop;
  std::vector<std::int32_t> stop_ids;
  std::optional<ToolFormat> tools;  ///< look for calls
  /// Sets apart what the model thinks; made of the prompt, which may have opened the thinking.
  std::optional<ThinkingSplitter> thinking;
  bool logprobs = false;
};

/// Decodes tokens, ends the text at stop strings, tells thinking from answer, finds calls of tools. One
/// thread at a time.
class Sequence {
 public:
  /// `context`: tokens before the text, which its first word continues. The tokenizer must outlive this.
  Sequence(const Tokenizer& tokenizer, SequenceOptions options, std::span<const std::int32_t> context = {});

  /// Takes an event and returns what it adds. A delta with a `finish`, an error or `cancelled` is the last:
  /// the engine need not go on.
  Delta take(const TokenEvent& event);

 private:
  std::string decode(std::int32_t id);
  void add_text(const std::string& text, Delta& delta);
  void split(const std::string& shown, Delta& delta);
  void add_parts(const std::vector<ThinkingPart>& parts, Delta& delta);
  void add_answer(const std::string& text, Delta& delta);
  void finish(const std::string& reason, Delta& delta);
  TokenLine line_of(const TokenEvent& event) const;
  std::string text_of(std::int32_t id) const;

  const Tokenizer& tokenizer_;
  SequenceOptions options_;
  StreamDecoder decoder_;
  StopText stop_;
  std::optional<ToolCallParser> calls_;
  std::vector<TokenLine> lines_;  // of tokens whose text is held back
};

}  // namespace caldera::serve
