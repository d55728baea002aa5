// OllamaWriter: answers of Ollama's API, a line of JSON each.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lm/serve/service/answer_writer.h"
#include "lm/serve/service/served_model.h"

namespace caldera::serve {

/// Writes answers of /api/chat, or of /api/generate.
class OllamaWriter : public AnswerWriter {
 public:
  OllamaWriter(std::string model, bool chat) : model_(std::move(model)), chat_(chat) {}

  void add(const Delta& delta) override;
  Json whole(const Usage& usage) const override;
  std::string events(const Delta& delta) override;
  std::string end(const Usage& usage) override;
  std::string silence() const override;
  const char* stream_type() const override { return "application/x-ndjson"; }

 private:
  using Clock = std::chrono::steady_clock;

  Json line(const Delta& delta) const;
  void note(const Delta& delta);
  Json finished(Json last, const Usage& usage) const;

  std::string model_;
  bool chat_;
  bool failed_ = false;
  Delta all_;  // of a whole answer
  std::string reason_ = "stop";
  Clock::time_point begin_ = Clock::now();
  std::optional<Clock::time_point> first_;  // when the first token came
};

/// Answers a request that says nothing: the model is there.
Json ollama_loaded(const std::string& model, bool chat);
/// Lists models as /api/tags does.
Json ollama_tags(const std::vector<std::string>& names, std::int64_t created);
/// Words an error as Ollama does: {"error"}.
Json ollama_error(const ApiError& error);

}  // namespace caldera::serve
