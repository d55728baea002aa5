// Defines what a BatchGenerator is asked and what it answers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "lm/generate/decoding_options.h"
#include "lm/generate/finish_reason.h"
#include "lm/generate/sampling/log_probabilities.h"

namespace caldera {

using RequestId = std::uint64_t;

/// Says what happened to a request. A request has an event for each token chosen, in order, and exactly one
/// with a `finish`, which is its last: that of its last token, or one without a token (cancelled, failed, or
/// max_tokens 0).
struct TokenEvent {
  RequestId request = 0;
  std::optional<std::int32_t> id;     ///< the token chosen, a stop token included
  std::optional<TokenReport> report;  ///< of that token, where log-probabilities were asked for
  /// Reports the prompt's tokens from the second one on, in the first event, where they were asked for.
  std::vector<TokenReport> prompt_reports;
  /// Holds what may be shown of the text from now on, where the request has a tokenizer.
  std::string text;
  std::optional<std::string> stop;     ///< the stop string that ended the text
  std::optional<FinishReason> finish;  ///< of the last event
  std::string error;                   ///< why it failed: a sentence for people
  std::int64_t prompt_tokens = 0;      ///< of the request
  std::int64_t reused_tokens = 0;      ///< prompt tokens whose keys and values were in the cache already
  std::int64_t generated_tokens = 0;   ///< so far, this one included
  std::int64_t drafted_tokens = 0;     ///< so far: that a drafter guessed, and of these
  std::int64_t accepted_tokens = 0;    ///< those that the model kept
};

/// A constraint, a drafter and a tokenizer are used by step() alone; where one throws, the request ends as
/// failed.
struct GenerateRequest : DecodingOptions {
  std::vector<std::int32_t> prompt;  ///< ids; at least one
  /// An adapter of load_adapter(), by its name; "": the model itself.
  std::string adapter;
  /// Says how many of the most likely tokens are reported with each token of the prompt, as `logprobs` does
  /// of those that are chosen. The whole prompt is computed then. Absent: none.
  std::optional<std::int64_t> prompt_logprobs;
  /// Lets the text go on where its context is full: the first half of what stands behind its first so many
  /// tokens is forgotten then, and the rest computed again at its new positions. At most half of the
  /// context. Absent: the text ends there.
  std::optional<std::int64_t> shift_keeps;
  /// Receives every event, on the thread of step() (a request cancelled while it waits: too). It has to be
  /// quick, as the whole batch waits for it; it may call submit() and cancel(). false ends the request: then
  /// this event was its last, whatever its `finish`. What it throws counts as false.
  std::function<bool(const TokenEvent&)> on_event;
};

class PromptCache;

/// Bounds, fixed when a generator is made.
struct BatchLimits {
  std::int64_t max_batch = 16;  ///< requests that are computed at once
  std::int64_t max_queue = 64;  ///< requests that wait; one more is refused (QueueFull)
  /// Positions of one request, prompt and generated together. 0: as many as the model has.
  std::int64_t max_context = 0;
  /// Positions whose keys and values the cache holds, of all requests together, rounded up to pages. The
  /// cache takes positions * BatchGenerator::bytes_per_position(model) bytes, at once. 0: max_batch times
  /// the smaller of max_context and 2048.
  std::int64_t cache_positions = 0;
  std::int64_t prefill_chunk = 512;  ///< prompt tokens computed between two steps of decoding at most
  bool reuse_prefixes = true;        ///< start from the pages of an earlier request with the same beginning
  /// Keeps texts beyond the generator's life, for requests with the same beginning; null: none.
  std::shared_ptr<PromptCache> prompt_cache;
};

/// Thrown by submit() where the queue is full: the caller is to try again later (HTTP: 429 or 503).
class QueueFull : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown by submit() where no adapter of the request's name is loaded, as it may have been unloaded a moment
/// ago (HTTP: 404).
class UnknownAdapter : public ValueError {
 public:
  using ValueError::ValueError;
};

/// Counters since the generator was made, and how full it is now.
struct BatchStatus {
  std::int64_t running = 0;         ///< requests in the batch
  std::int64_t waiting = 0;         ///< requests in the queue
  std::int64_t pages = 0;           ///< of the cache
  std::int64_t pages_in_use = 0;    ///< held by running requests
  std::int64_t pages_reusable = 0;  ///< held by nobody, kept for requests with the same beginning
  std::int64_t page_positions = 0;  ///< positions a page
  std::int64_t cache_bytes = 0;
  // Counts the tokens of prompts, each once: those of requests past their prompt are in one of the two.
  std::uint64_t prompt_tokens = 0;      ///< computed
  std::uint64_t reused_tokens = 0;      ///< taken from the cache instead
  std::uint64_t generated_tokens = 0;   ///< chosen
  std::uint64_t drafted_tokens = 0;     ///< guessed by drafters and checked, and of these
  std::uint64_t accepted_tokens = 0;    ///< those that were kept
  std::uint64_t recomputed_tokens = 0;  ///< of any kind, computed again after their pages were given up
  std::uint64_t shifted = 0;    ///< times that a text forgot some of its tokens, as its context was full
  std::uint64_t finished = 0;   ///< requests, whatever the reason
  std::uint64_t preempted = 0;  ///< times that a request gave its pages up, to be computed again later
};

}  // namespace caldera
