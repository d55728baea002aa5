// ResponseWriter: answers of /v1/responses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lm/serve/service/answer_writer.h"

namespace caldera::serve {

/// Writes items of reasoning, of text and of calls of functions, in the order in which they come.
class ResponseWriter : public AnswerWriter {
 public:
  /// `told`: what the answer repeats of its request.
  ResponseWriter(std::string model, Json told, bool logprobs);

  void add(const Delta& delta) override;
  Json whole(const Usage& usage) const override;
  std::string events(const Delta& delta) override;
  std::string end(const Usage& usage) override;

 private:
  enum class Item : std::uint8_t { none, reasoning, message, call };

  std::string event(const char* type, const Json& data);
  std::string begin(const Delta& delta);
  std::string open(Item kind);
  std::string close();
  std::string piece(Item kind, const std::string& text);
  std::string call_piece(const ToolCallPiece& piece);
  std::string call(const ToolCall& call);
  Json part() const;
  Json item(bool complete) const;
  Json response(const char* status) const;

  std::string id_;
  std::string model_;
  std::int64_t created_;
  Json told_;
  bool logprobs_;
  Json output_ = Json::array();
  bool begun_ = false;
  bool failed_ = false;
  bool cut_ = false;           // at the most tokens
  std::int64_t sequence_ = 0;  // of events
  Item kind_ = Item::none;     // of the item that is being written
  std::string item_id_;
  std::string text_;              // of that item
  Json lines_ = Json::array();    // its log-probabilities
  Json pending_ = Json::array();  // those of tokens whose text is held back
  ToolCall call_;
};

}  // namespace caldera::serve
