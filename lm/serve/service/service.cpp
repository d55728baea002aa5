#include "lm/serve/service/service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/chat/turns.h"
#include "lm/serve/service/rendered_chat.h"

namespace caldera::serve {
namespace {

ApiError unknown_model(const std::string& name) {
  return not_found(fmt::format("the model '{}' does not exist; /v1/models lists those that do",
                               caldera::detail::printable(name.substr(0, 100))),
                   "model", "model_not_found");
}

// Refuses ids beyond the vocabulary.
void check_ids(const std::vector<std::int32_t>& ids, std::int64_t vocabulary, const char* param) {
  for (const std::int32_t id : ids)
    if (id >= vocabulary)
      throw bad_request(fmt::format("token id {} lies outside of the vocabulary of {}", id, vocabulary),
                        param);
}

// Tokens of an answer that goes on where the context is full, in contexts, where the request has no number.
constexpr std::int64_t kShiftedContexts = 10;

void set_shown(const CompletionOptions& options, SequenceOptions& sequence) {
  sequence.shows_special = options.shows_special;
  sequence.shows_stop = options.shows_stop;
}

// The first `width` numbers of each vector, made length 1 again.
void shorten(std::vector<std::vector<float>>& vectors, std::size_t width) {
  for (std::vector<float>& vector : vectors) {
    vector.resize(width);
    double square = 0;
    for (const float x : vector) square += static_cast<double>(x) * x;
    const double length = std::max(std::sqrt(square), 1e-12);
    for (float& x : vector) x = static_cast<float>(x / length);
  }
}

void check_width(const Embedder& embedder, std::int64_t width) {
  const Embedder::Widths widths = embedder.widths();
  const std::int64_t own = embedder.dimension();
  if (width == own || (widths.any && width < own) || std::ranges::count(widths.listed, width) > 0) return;
  std::string allowed = fmt::format("the model's vectors have {} numbers", own);
  if (widths.any) allowed += ", or fewer";
  if (!widths.listed.empty()) allowed += fmt::format(", or {}", fmt::join(widths.listed, ", "));
  if (!widths.any && widths.listed.empty())
    allowed += ", and may not be shortened (where the model was trained for it: caldera serve --matryoshka)";
  throw bad_request(fmt::format("'dimensions' is {}: {}", width, allowed), "dimensions");
}

}  // namespace

Service::Service(const ServedModel& model, Engine& engine, const ServeLimits& limits)
    : model_(model),
      engine_(&engine),
      limits_(limits),
      constraints_(model),
      breakers_(model),
      adapters_(model.adapters) {}

Service::Service(const ServedModel& model, Embedder& embedder, const ServeLimits& limits)
    : model_(model),
      embedder_(&embedder),
      limits_(limits),
      constraints_(model),
      breakers_(model),
      adapters_(model.adapters) {}

Engine& Service::engine() const {
  if (engine_ != nullptr) return *engine_;
  throw bad_request(fmt::format("'{}' gives embeddings alone; use /v1/embeddings", embedder_->name()),
                    "model", "model_not_supported");
}

std::string Service::render(const ChatRequest& request) const {
  adapter_of(request.options.model);  // before the work of rendering
  return render_chat(model_, request);
}

/// How many tokens there are to be for the answer: what is asked for, a quarter of the context at most.
std::int64_t Service::room_of(const CompletionOptions& options) const {
  const std::int64_t most = std::max<std::int64_t>(engine().context() / 4, 1);
  return std::min(options.max_tokens.value_or(most), most);
}

/// Leaves out the beginning of a prompt, as the request asks.
void Service::keep_last(const CompletionOptions& options, std::vector<std::int32_t>& ids) const {
  if (!options.last_tokens) return;
  std::int64_t most = *options.last_tokens;
  if (most < 0) most = std::max<std::int64_t>(engine().context() - room_of(options), 1);
  if (std::ssize(ids) > most) ids.erase(ids.begin(), ids.end() - most);
}

/// Where there is no room for the conversation, and the request says so, as few old turns go as will do.
Service::Rendered Service::prompt_of(const ChatRequest& request) const {
  const auto rendered = [&](const ChatRequest& one) {
    Rendered result;
    result.text = render(one);
    result.ids = model_.tokenizer->encode(result.text, false);
    return result;
  };
  const std::int64_t most = engine().context() - room_of(request.options);
  Rendered prompt = rendered(request);
  std::size_t last = request.drops_old_turns ? count_old_turns(request.messages) : 0;
  if (std::ssize(prompt.ids) > most && last > 0) {
    ChatRequest shorter = request;
    const auto without = [&](std::size_t count) {
      shorter.messages = without_old_turns(request.messages, count);
      return rendered(shorter);
    };
    std::size_t first = 1;  // the fewest that will do, if any number does, are from here to `last`
    while (first < last) {
      const std::size_t middle = first + (last - first) / 2;
      if (std::ssize(without(middle).ids) <= most)
        last = middle;
      else
        first = middle + 1;
    }
    prompt = without(first);
  }
  keep_last(request.options, prompt.ids);
  return prompt;
}

Json Service::tokenize(const TokenizeRequest& request) const {
  const std::int64_t context = engine().context();
  adapter_of(request.model);
  // A template has written special tokens itself.
  const std::string text = request.chat ? render(*request.chat) : request.text;
  const std::vector<std::int32_t> ids = model_.tokenizer->encode(text, request.add_special && !request.chat);
  Json answer{{"count", ids.size()}, {"max_model_len", context}, {"tokens", ids}};
  if (!request.with_pieces) return answer;
  for (const std::int32_t id : ids)
    answer["token_strs"].push_back(model_.tokenizer->is_special(id)
                                       ? model_.tokenizer->decode({&id, 1}, false)
                                       : model_.tokenizer->token_bytes(id));
  return answer;
}

Json Service::detokenize(const DetokenizeRequest& request) const {
  engine();
  adapter_of(request.model);
  check_ids(request.tokens, model_.tokenizer->vocab_size(), "tokens");
  const std::string text = model_.tokenizer->decode(request.tokens, false);
  return {{"prompt", text}, {"content", text}};  // vLLM's name for it, and llama.cpp's
}

Json Service::apply_template(const ChatRequest& request) const {
  engine();
  return {{"prompt", render(request)}};
}

Json Service::count_tokens(const ChatRequest& request) const {
  engine();
  return {{"input_tokens", model_.tokenizer->encode(render(request), false).size()}};
}

std::shared_ptr<Job> Service::start(const ChatRequest& request) {
  Engine& engine = this->engine();
  Rendered prompt = prompt_of(request);
  JobText first;
  first.request = make_request(request.options, std::move(prompt.ids));
  set_shown(request.options, first.options);
  if (!request.tools.is_null()) first.options.tools = model_.tools;
  first.options.streams_calls =
      request.options.stream && constraints_.holds_calls() && request.options.form.is_any();
  if (model_.split_thinking) first.options.thinking.emplace(prompt.text);
  first.request.text = text_options(model_.tokenizer, first.options);
  first.request.text.continues_prompt = request.continues;
  std::vector<JobText> texts;
  add_choices(
      request.options, first,
      [&]() -> std::shared_ptr<TokenConstraint> {
        // A template that opens the thinking leaves its end to the model.
        const std::string_view mark =
            first.options.thinking ? first.options.thinking->close() : std::string_view();
        if (request.tool_choice > ToolChoice::automatic)
          return constraints_.behind(mark, constraints_.tool_call(request.tools, request.tool_name));
        if (request.options.form.is_any() && request.tool_choice == ToolChoice::automatic)
          return constraints_.begun_calls(request.tools, first.options.thinking, request.parallel_calls);
        return constraints_.behind(mark, constraints_.form(request.options.form));
      },
      texts);
  return Job::start(engine, *model_.tokenizer, std::move(texts));
}

std::shared_ptr<Job> Service::start(const CompletionRequest& request) {
  Engine& engine = this->engine();
  adapter_of(request.options.model);
  std::vector<JobText> texts;
  for (const Prompt& prompt : request.prompts) {
    JobText first;
    std::vector<std::int32_t> ids;
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      ids = model_.tokenizer->encode(*text);
    } else {
      ids = std::get<std::vector<std::int32_t>>(prompt);
      check_ids(ids, model_.tokenizer->vocab_size(), "prompt");
    }
    keep_last(request.options, ids);
    if (request.echo) first.options.echo = model_.tokenizer->decode(ids);
    const bool scores = request.echo && request.options.logprobs;
    if (scores) first.options.scored_prompt = ids;
    first.request = make_request(request.options, std::move(ids));
    set_shown(request.options, first.options);
    if (scores) first.request.prompt_logprobs = request.options.logprobs;
    first.request.text = text_options(model_.tokenizer, first.options);
    add_choices(
        request.options, first, [&] { return constraints_.form(request.options.form); }, texts);
  }
  return Job::start(engine, *model_.tokenizer, std::move(texts));
}

GenerateRequest Service::make_request(const CompletionOptions& options,
                                      std::vector<std::int32_t> prompt) const {
  const std::int64_t context = engine().context();
  const auto size = static_cast<std::int64_t>(prompt.size());
  if (prompt.empty()) throw bad_request("the prompt has no tokens", "prompt");
  const bool generates = options.max_tokens.value_or(1) > 0;
  if (generates ? size >= context : size > context) {
    throw bad_request(
        fmt::format("the prompt has {} tokens; prompt and answer together may have {}", size, context),
        "messages", "context_length_exceeded");
  }
  std::vector<std::int32_t> biased;
  for (const auto& [id, bias] : options.sampling.logit_bias) biased.push_back(id);
  check_ids(biased, model_.tokenizer->vocab_size(), "logit_bias");
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.sampling = options.sampling;
  if (options.sampling.repeats.multiplier > 0)
    request.sampling.repeats.breakers = breakers_.tokens_of(options.repeat_breakers);
  request.min_tokens = options.min_tokens;
  if (options.shift_keeps) {
    // One that says nothing of its length is to end some time.
    request.max_tokens = options.max_tokens.value_or(kShiftedContexts * context);
    const std::int64_t kept = *options.shift_keeps < 0 ? size : *options.shift_keeps;
    request.shift_keeps = std::min(kept, context / 2);
  } else {
    request.max_tokens = std::min(options.max_tokens.value_or(context), context - size);
  }
  if (!options.ignore_eos) request.stop_ids = model_.stop_ids;
  request.stop_ids.insert(request.stop_ids.end(), options.stop_ids.begin(), options.stop_ids.end());
  request.adapter = adapter_of(options.model);
  request.logprobs = options.logprobs;
  return request;
}

void Service::add_choices(const CompletionOptions& options, const JobText& text,
                          const std::function<std::shared_ptr<TokenConstraint>()>& constrain,
                          std::vector<JobText>& texts) const {
  for (std::int64_t choice = 0; choice < options.choices; ++choice) {
    JobText copy = text;
    copy.options.index = static_cast<std::int64_t>(texts.size());
    copy.request.text.stop = options.stop;
    copy.request.sampling.seed += static_cast<std::uint64_t>(choice);
    copy.counts_prompt = choice == 0;
    // A constraint and a drafter follow one text.
    copy.request.constraint = constrain();
    if (speculation_ != nullptr) {
      copy.request.draft_tokens = speculation_->options().tokens;
      copy.request.drafter = speculation_->drafter(copy.request.sampling);
    }
    texts.push_back(std::move(copy));
  }
}

std::string Service::adapter_of(const std::string& model) const {
  if (model.empty() || model == model_.name) return {};
  if (has_adapter(model)) return model;
  throw unknown_model(model);
}

bool Service::has_adapter(const std::string& name) const {
  const std::lock_guard lock(adapters_mutex_);
  return std::find(adapters_.begin(), adapters_.end(), name) != adapters_.end();
}

void Service::load_adapter(const std::string& name, const std::filesystem::path& dir, bool replaces) {
  Engine& engine = this->engine();
  if (name.empty() || name == model_.name)
    throw bad_request("an adapter needs a name of its own", "lora_name");
  if (has_adapter(name) && !replaces)
    throw bad_request(
        fmt::format("the adapter '{}' is loaded already; \"load_inplace\": true replaces it", name),
        "lora_name");
  try {
    engine.load_adapter(name, dir);
  } catch (const Error& error) {
    throw bad_request(error.what(), "lora_path");
  }
  const std::lock_guard lock(adapters_mutex_);
  if (std::find(adapters_.begin(), adapters_.end(), name) == adapters_.end()) adapters_.push_back(name);
  folders_[name] = dir;
}

std::map<std::string, std::filesystem::path> Service::loaded_adapters() const {
  const std::lock_guard lock(adapters_mutex_);
  return folders_;
}

void Service::unload_adapter(const std::string& name) {
  Engine& engine = this->engine();
  {
    const std::lock_guard lock(adapters_mutex_);
    folders_.erase(name);
    if (std::erase(adapters_, name) == 0)
      throw not_found(
          fmt::format("there is no adapter '{}'", caldera::detail::printable(name.substr(0, 100))),
          "lora_name", "model_not_found");
  }
  try {
    engine.unload_adapter(name);
  } catch (const ValueError& error) {
    throw bad_request(error.what(), "lora_name");
  }
}

void Service::require_embedder(const std::string& model) const {
  if (embedder_ == nullptr) {
    throw bad_request(
        fmt::format("'{}' generates text; for its embeddings start the server with --embeddings",
                    model_.name),
        "model", "embeddings_unavailable");
  }
  if (!model.empty() && model != embedder_->name()) throw unknown_model(model);
}

/// A vector a text; none once `go_on` says no.
std::vector<std::vector<float>> Service::vectors_of(const std::vector<Prompt>& inputs, Usage& usage,
                                                    const std::function<bool()>& go_on) const {
  std::vector<Embedder::Tokens> texts;
  for (const Prompt& input : inputs) {
    texts.push_back(tokens_of(input));
    usage.prompt_tokens += static_cast<std::int64_t>(texts.back().size());
  }
  return embedder_->embed(texts, go_on);
}

Json Service::embed(const EmbeddingRequest& request, Usage& usage, const std::function<bool()>& go_on) {
  require_embedder(request.model);
  if (request.dimensions) check_width(*embedder_, *request.dimensions);
  std::vector<std::vector<float>> vectors = vectors_of(request.inputs, usage, go_on);
  if (vectors.empty()) return nullptr;
  if (request.dimensions && *request.dimensions < embedder_->dimension())
    shorten(vectors, static_cast<std::size_t>(*request.dimensions));
  return embedding_reply(request, embedder_->name(), vectors, usage.prompt_tokens);
}

Json Service::rerank(const RerankRequest& request, Usage& usage, const std::function<bool()>& go_on) {
  require_embedder(request.model);
  std::vector<Prompt> inputs{request.query};
  inputs.insert(inputs.end(), request.documents.begin(), request.documents.end());
  const std::vector<std::vector<float>> vectors = vectors_of(inputs, usage, go_on);
  if (vectors.empty()) return nullptr;
  std::vector<double> scores;
  for (std::size_t i = 1; i < vectors.size(); ++i)  // vectors have length 1
    scores.push_back(std::inner_product(vectors[0].begin(), vectors[0].end(), vectors[i].begin(), 0.0));
  return rerank_reply(request, embedder_->name(), scores, usage.prompt_tokens);
}

std::vector<std::int32_t> Service::tokens_of(const Prompt& input) const {
  std::vector<std::int32_t> ids;
  if (const auto* text = std::get_if<std::string>(&input)) {
    ids = embedder_->tokenize(*text);
    if (ids.empty()) throw bad_request("'input' has a text without tokens", "input");
  } else {
    ids = std::get<std::vector<std::int32_t>>(input);
    check_ids(ids, embedder_->vocabulary(), "input");
  }
  if (static_cast<std::int64_t>(ids.size()) <= embedder_->max_tokens()) return ids;
  throw bad_request(
      fmt::format("an input has {} tokens; the model takes {} at most", ids.size(), embedder_->max_tokens()),
      "input", "context_length_exceeded");
}

std::string Service::model_name(const CompletionOptions& options) const {
  return options.model.empty() ? model_.name : options.model;
}

Json Service::describe(const std::string& name) const {
  Json entry{{"id", name}, {"object", "model"}, {"created", model_.created}, {"owned_by", "caldera"}};
  const bool embeds = embedder_ != nullptr && name == embedder_->name();
  entry["max_model_len"] = embeds ? embedder_->max_tokens() : engine().context();
  if (!embeds && name != model_.name) entry["parent"] = model_.name;
  return entry;
}

std::vector<std::string> Service::model_names() const {
  std::vector<std::string> names;
  if (engine_ != nullptr) {
    names.push_back(model_.name);
    const std::lock_guard lock(adapters_mutex_);
    names.insert(names.end(), adapters_.begin(), adapters_.end());
  }
  if (embedder_ != nullptr) names.push_back(embedder_->name());
  return names;
}

Json Service::models() const {
  Json list = Json::array();
  for (const std::string& name : model_names()) list.push_back(describe(name));
  return {{"object", "list"}, {"data", std::move(list)}};
}

Json Service::model(const std::string& name) const {
  if (embedder_ != nullptr && name == embedder_->name()) return describe(name);
  if (engine_ == nullptr) throw unknown_model(name);
  adapter_of(name);
  return describe(name);
}

}  // namespace caldera::serve
