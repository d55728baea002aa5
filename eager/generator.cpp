#include "eager/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "eager/errors.h"
#include "lm/generate/generator.h"
#include "lm/tokenizers/stream_decoder.h"

namespace caldera::v1 {
namespace {

SamplingOptions sampling_of(const GeneratorConfig& config) {
  SamplingOptions options = config.sampling.options();
  if (config.temperature) options.temperature = *config.temperature;
  if (config.top_p) options.top_p = *config.top_p;
  if (config.top_k) options.top_k = *config.top_k;
  options.repetition_penalty = config.repetition_penalty;
  options.seed = config.seed;
  return options;
}

std::vector<std::int32_t> ends_of(const GeneratorConfig& config, const CausalLM& model) {
  std::vector<std::int32_t> ends = config.stop_tokens;
  if (!config.stop_on_eos) return ends;
  if (config.eos_token_id)
    ends.push_back(*config.eos_token_id);
  else
    for (const std::int32_t id : stop_tokens(model.config())) ends.push_back(id);
  return ends;
}

}  // namespace

void GeneratorConfig::validate() const {
  if (max_tokens < 1)
    throw InferenceError::invalid_config(fmt::format("max_tokens is {}, want it positive", max_tokens));
  try {
    sampling_of(*this).validate();
  } catch (const ValueError& error) {
    throw InferenceError::invalid_sampling(error.what());
  }
}

Generator::Generator(LanguageModel model, GeneratorConfig config, std::shared_ptr<const Tokenizer> tokenizer)
    : model_(std::move(model)), config_(std::move(config)), tokenizer_(std::move(tokenizer)) {
  config_.validate();
}

std::vector<std::int32_t> Generator::generate(std::span<const std::int32_t> prompt) const {
  return generate_stream(prompt, [](const StreamToken&) { return true; });
}

std::vector<std::int32_t> Generator::generate_stream(
    std::span<const std::int32_t> prompt, const std::function<bool(const StreamToken&)>& on_token) const {
  GenerateOptions options;
  options.max_tokens = config_.max_tokens;
  options.sampling = sampling_of(config_);
  options.stop_ids = ends_of(config_, model_.lazy());
  std::vector<float> logits;  // that the next token is drawn from
  options.on_logits = [&](std::span<const float> row) { logits.assign(row.begin(), row.end()); };
  std::optional<StreamDecoder> text;
  if (tokenizer_) text.emplace(*tokenizer_).prime(prompt);
  options.on_token = [&](std::int32_t id) {
    const TokenReport report = report_token(logits, id, 0);
    StreamToken token{.token_id = id,
                      .text = text ? text->push(id) : std::string(),
                      .logit = logits[static_cast<std::size_t>(id)],
                      .probability = std::exp(report.drawn.log_probability),
                      .is_eos = std::ranges::find(options.stop_ids, id) != options.stop_ids.end()};
    return on_token(token);
  };
  try {
    return caldera::generate(model_.lazy(), prompt, options).ids;
  } catch (const ValueError& error) {
    throw InferenceError::failed(error.what());
  }
}

struct TokenStream::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<StreamToken> tokens;
  std::exception_ptr failure;
  bool finished = false;
  bool stopped = false;
  std::thread thread;
};

TokenStream::TokenStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
TokenStream::TokenStream(TokenStream&&) noexcept = default;

TokenStream::~TokenStream() {
  if (!state_) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopped = true;
  }
  state_->thread.join();
}

std::optional<StreamToken> TokenStream::next() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return !state_->tokens.empty() || state_->finished; });
  if (state_->tokens.empty()) {
    if (state_->failure) std::rethrow_exception(std::exchange(state_->failure, nullptr));
    return std::nullopt;
  }
  StreamToken token = std::move(state_->tokens.front());
  state_->tokens.pop_front();
  return token;
}

TokenStream Generator::generate_stream_async(std::vector<std::int32_t> prompt) const {
  auto owned = std::make_unique<TokenStream::State>();
  TokenStream::State& state = *owned;
  state.thread = std::thread([&state, generator = *this, prompt = std::move(prompt)] {
    std::exception_ptr failure;
    try {
      generator.generate_stream(prompt, [&](const StreamToken& token) {
        const std::lock_guard lock(state.mutex);
        state.tokens.push_back(token);
        state.changed.notify_one();
        return !state.stopped;
      });
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(state.mutex);
    state.failure = failure;
    state.finished = true;
    state.changed.notify_one();
  });
  return TokenStream(std::move(owned));
}

}  // namespace caldera::v1
