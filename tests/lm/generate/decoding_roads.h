// What tests of decoding share: a tokenizer of letters, drafters, and the two roads to a text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lm/generate/grammar/tokenizer_vocabulary.h"
#include "lm/generate/model_drafter.h"
#include "tests/lm/generate/batch_requests.h"

namespace caldera::testing {

/// 61 tokens, as batch_config() has: what JSON is written with, pieces of several characters, an end.
class LetterTokenizer final : public Tokenizer {
 public:
  static constexpr std::int32_t kEnd = 60;

  LetterTokenizer() {
    for (const char c : std::string(R"({}[]":,.-0123456789abcdefghijklmnopqrstuvwxyz \)"))
      texts_.emplace_back(1, c);
    for (const char* piece : {"\":", "{\"", "\"}", "ab", "ca", "the", " an", "e s", "12", ", ", "xyz"})
      texts_.emplace_back(piece);
    texts_.resize(kEnd);
  }

  std::vector<std::int32_t> encode(std::string_view text, bool /*add_special*/) const override {
    std::vector<std::int32_t> ids;
    for (const char c : text)
      ids.push_back(static_cast<std::int32_t>(std::ranges::find(texts_, std::string(1, c)) - texts_.begin()));
    return ids;
  }
  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      if (id < 0 || id > kEnd) throw ValueError("no such token");
      text += id < kEnd ? texts_[static_cast<std::size_t>(id)] : skip_special ? "" : "<end>";
    }
    return text;
  }
  std::int64_t vocab_size() const override { return kEnd + 1; }
  std::optional<std::int32_t> bos_id() const override { return std::nullopt; }
  std::optional<std::int32_t> eos_id() const override { return kEnd; }
  bool is_special(std::int32_t id) const override { return id == kEnd; }

 private:
  std::vector<std::string> texts_;
};

/// Guesses always the same, drawn from nothing.
class FixedDrafter final : public Drafter {
 public:
  explicit FixedDrafter(Ids guess) : guess_(std::move(guess)) {}
  TokenDraft propose(const SamplingContext& /*text*/, std::int64_t count) override {
    TokenDraft draft;
    draft.ids.assign(guess_.begin(), guess_.begin() + std::min<std::ptrdiff_t>(count, std::ssize(guess_)));
    return draft;
  }

 private:
  Ids guess_;
};

/// Guesses what a text is known to become, but for every `wrong`-th token of it.
class KnowingDrafter final : public Drafter {
 public:
  KnowingDrafter(Ids prompt, const Ids& answer, std::size_t wrong)
      : known_(std::move(prompt)), wrong_(wrong) {
    known_.insert(known_.end(), answer.begin(), answer.end());
  }
  TokenDraft propose(const SamplingContext& text, std::int64_t count) override {
    TokenDraft draft;
    for (std::size_t i = text.seen.size(); i < known_.size() && std::ssize(draft.ids) < count; ++i)
      draft.ids.push_back(i % wrong_ == 0 ? (known_[i] + 1) % 60 : known_[i]);
    return draft;
  }

 private:
  Ids known_;
  std::size_t wrong_;
};

/// What either road tells of a text.
struct Told {
  Ids ids;
  std::string text;
  std::vector<TokenReport> reports;
  std::optional<FinishReason> finish;
  std::optional<std::string> stop;
  std::int64_t drafted = 0, accepted = 0;
};

inline Told generated(CausalLM& model, const Ids& prompt, const DecodingOptions& decoding) {
  GenerateOptions options;
  static_cast<DecodingOptions&>(options) = decoding;
  std::string shown;
  options.on_text = [&](std::string_view piece) {
    shown += piece;
    return true;
  };
  const Generation result = generate(model, prompt, options);
  EXPECT_EQ(shown, result.text) << "what was shown piece by piece";
  return {result.ids,  result.text,           result.reports,        result.finish_reason,
          result.stop, result.drafted_tokens, result.accepted_tokens};
}

/// Puts a request into a generator; `told` is complete when that has run.
inline RequestId submit(BatchGenerator& generator, const Ids& prompt, const DecodingOptions& decoding,
                        Told& told, const std::string& adapter = {}) {
  GenerateRequest request;
  static_cast<DecodingOptions&>(request) = decoding;
  request.prompt = prompt;
  request.adapter = adapter;
  request.on_event = [&told](const TokenEvent& event) {
    EXPECT_EQ(event.error, "");
    if (event.id) told.ids.push_back(*event.id);
    if (event.report) told.reports.push_back(*event.report);
    told.text += event.text;
    told.stop = event.stop;
    told.finish = event.finish;
    told.drafted = event.drafted_tokens;
    told.accepted = event.accepted_tokens;
    return true;
  };
  return generator.submit(std::move(request));
}

}  // namespace caldera::testing
