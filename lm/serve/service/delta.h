// Delta: what one step adds to an answer.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lm/chat/tools/tool_call_parser.h"

namespace caldera::serve {

/// A token as its log-probability is reported.
struct TokenText {
  std::string text;  ///< its bytes, which may be a part of a character
  double logprob = 0;
};

struct TokenLine {
  TokenText token;
  std::vector<TokenText> top;
  bool known = true;  ///< false of a prompt's first token: there is no log-probability
  bool shown = true;  ///< whether it is part of the text
};

/// Holds what is new of one of a request's texts.
struct Delta {
  std::int64_t index = 0;  ///< of the text: "choices[index]"
  std::string text;
  std::string reasoning;              ///< what the model thinks before it answers
  std::vector<ToolCall> calls;        ///< that are complete
  std::vector<ToolCallPiece> pieces;  ///< of calls that are being written, where the answer is streamed
  std::vector<bool> told;             ///< of each of `calls`, whether pieces have told it
  std::vector<TokenLine> tokens;      ///< where log-probabilities were asked for
  std::string finish;                 ///< "stop", "length", "tool_calls"; empty: it goes on
  std::string stop;                   ///< the stop string that ended the text
  std::string error;                  ///< why it failed, in the last one of a text that did
  bool cancelled = false;             ///< likewise
  bool thinking = false;              ///< the token that brought it is one of the thinking

  bool shows() const { return !text.empty() || !reasoning.empty() || !calls.empty() || !pieces.empty(); }
  bool ends() const { return !finish.empty() || !error.empty() || cancelled; }
};

}  // namespace caldera::serve
