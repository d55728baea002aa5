// MessageWriter: answers of /v1/messages.
#pragma once

#include <cstddef>
#include <string>

#include "lm/serve/service/answer_writer.h"

namespace caldera::serve {

/// Writes blocks of thinking, of text and of calls of tools, in the order in which they come.
class MessageWriter : public AnswerWriter {
 public:
  MessageWriter(std::string model, std::int64_t prompt_tokens);

  void add(const Delta& delta) override;
  Json whole(const Usage& usage) const override;
  std::string events(const Delta& delta) override;
  std::string end(const Usage& usage) override;

 private:
  void append(const char* type, const char* field, const std::string& text);
  std::string begin(const Delta& delta);
  std::string piece(const char* type, const char* field, const std::string& text);
  std::string call_piece(const ToolCallPiece& piece);
  std::string call(const ToolCall& call);
  std::string close_block();
  void note_end(const Delta& delta);
  Json head() const;

  std::string id_;
  std::string model_;
  std::int64_t prompt_tokens_;
  Json content_ = Json::array();  // of a whole answer
  bool begun_ = false;            // of a stream
  bool failed_ = false;
  std::string open_;  // the type of the block that is being written
  std::size_t blocks_ = 0;
  Json stop_reason_ = "end_turn";
  Json stop_sequence_;
};

/// Words an error as Anthropic's API does: {"type": "error", "error": {"type", "message"}}.
Json message_error(const ApiError& error);

}  // namespace caldera::serve
