// Replies: the JSON of answers, whole and in chunks.
#pragma once

#include <string>
#include <vector>

#include "lm/serve/service/answer_writer.h"

namespace caldera::serve {

/// Holds what an answer says of itself.
struct ReplyHead {
  std::string id;  ///< "chatcmpl-…"
  std::string model;
  std::int64_t created = 0;
  bool chat = true;  ///< of /v1/chat/completions, not /v1/completions
  bool logprobs = false;
};

/// A head with an id of its own and the present time.
ReplyHead make_head(const std::string& model, bool chat, bool logprobs);

Json usage_json(const Usage& usage);

/// [{"token", "logprob", "bytes", "top_logprobs"}, ...].
Json logprobs_json(const std::vector<TokenLine>& lines);

/// Letters and digits that no other answer has.
std::string random_id();

/// Gathers the deltas of a request into one answer.
class Reply {
 public:
  Reply(const ReplyHead& head, std::size_t texts);
  /// Throws ApiError for a delta that says that its text failed.
  void add(const Delta& delta);
  Json json(const Usage& usage) const;

 private:
  struct Text {
    std::string text;
    std::string reasoning;
    std::vector<ToolCall> calls;
    std::vector<TokenLine> tokens;
    std::string finish;
  };

  ReplyHead head_;
  std::vector<Text> texts_;
};

/// Makes the chunks of a stream.
class ChunkWriter {
 public:
  ChunkWriter(const ReplyHead& head, std::size_t texts, bool include_usage);
  /// The events that tell a delta: "data: {…}\n\n", one or several.
  std::string events(const Delta& delta);
  /// The last events: the usage, where it was asked for, and [DONE].
  std::string end(const Usage& usage) const;

 private:
  struct Text {
    bool begun = false;
    std::size_t calls = 0;
    std::size_t characters = 0;  // of the tokens told, for "text_offset"
  };

  std::string event(Json choice) const;
  Json chunk() const;

  ReplyHead head_;
  std::vector<Text> texts_;
  bool include_usage_;
};

/// Writes answers of OpenAI's API.
class CompletionWriter : public AnswerWriter {
 public:
  CompletionWriter(const ReplyHead& head, std::size_t texts, bool include_usage)
      : reply_(head, texts), chunks_(head, texts, include_usage) {}

  void add(const Delta& delta) override { reply_.add(delta); }
  Json whole(const Usage& usage) const override { return reply_.json(usage); }
  std::string events(const Delta& delta) override { return chunks_.events(delta); }
  std::string end(const Usage& usage) override { return chunks_.end(usage); }

 private:
  Reply reply_;
  ChunkWriter chunks_;
};

/// "data: {…}\n\n".
std::string server_event(const Json& data);

}  // namespace caldera::serve
