#include "lm/serve/service/job.h"

#include "engine/base/error.h"
#include "lm/serve/protocol/api_error.h"

namespace caldera::serve {
namespace {

// What a parser throws ends the one text.
Delta take_event(Sequence& sequence, const TokenEvent& event, std::int64_t index) {
  try {
    return sequence.take(event);
  } catch (const std::exception& error) {
    Delta delta;
    delta.index = index;
    delta.error = error.what();
    return delta;
  }
}

}  // namespace

Job::Job(Engine& engine, std::size_t texts)
    : engine_(engine), texts_(texts), state_(std::make_shared<State>()) {
  state_->running = texts;
  state_->counted.resize(texts);
}

std::shared_ptr<Job> Job::start(Engine& engine, const Tokenizer& tokenizer, std::vector<JobText> texts) {
  std::shared_ptr<Job> job(new Job(engine, texts.size()));
  for (JobText& text : texts) {
    const auto sequence = std::make_shared<Sequence>(tokenizer, text.options);
    text.request.on_event = [state = job->state_, sequence,
                             index = text.options.index](const TokenEvent& event) {
      Delta delta = take_event(*sequence, event, index);
      const bool last = delta.ends();
      const std::lock_guard lock(state->mutex);
      if (event.id) ++state->usage.completion_tokens;
      if (event.id && delta.thinking) ++state->usage.reasoning_tokens;
      if (!state->counted[static_cast<std::size_t>(index)]) {
        state->counted[static_cast<std::size_t>(index)] = true;
        state->usage.cached_tokens += event.reused_tokens;
      }
      const bool is_new = last || delta.shows() || !delta.tokens.empty();
      if (is_new) state->deltas.push_back(std::move(delta));
      if (last) --state->running;
      if (is_new) state->changed.notify_all();
      return !last && !state->cancelled;
    };
    const auto prompt_tokens = text.counts_prompt ? static_cast<std::int64_t>(text.request.prompt.size()) : 0;
    try {
      job->ids_.push_back(engine.submit(std::move(text.request)));
    } catch (const QueueFull&) {
      throw too_busy("the server is busy: its queue is full; try again later");
    } catch (const UnknownAdapter& error) {  // it was there when the request came
      throw not_found(error.what(), "model", "model_not_found");
    } catch (const ValueError& error) {
      throw bad_request(error.what());
    }
    const std::lock_guard lock(job->state_->mutex);
    job->state_->usage.prompt_tokens += prompt_tokens;
  }
  return job;
}

std::vector<Delta> Job::take(std::chrono::milliseconds wait) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, wait, [&] { return !state_->deltas.empty() || state_->running == 0; });
  std::vector<Delta> result(std::make_move_iterator(state_->deltas.begin()),
                            std::make_move_iterator(state_->deltas.end()));
  state_->deltas.clear();
  return result;
}

bool Job::done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->running == 0 && state_->deltas.empty();
}

void Job::cancel() {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->running == 0) return;
    state_->cancelled = true;
  }
  for (const RequestId id : ids_) engine_.cancel(id);
}

Usage Job::usage() const {
  const std::lock_guard lock(state_->mutex);
  return state_->usage;
}

}  // namespace caldera::serve
