#include "cli/serve/service/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "engine/tensor/error.h"
#include "training/chat/base/chat_template_error.h"

namespace caldera::serve {
namespace {

Json describe(const std::string& name, const ServedModel& model, std::int64_t context) {
  Json entry{{"id", name}, {"object", "model"}, {"created", model.created}, {"owned_by", "caldera"}};
  if (context == 0) return entry;  // a model of embeddings, which stands by itself
  entry["max_model_len"] = context;
  if (name != model.name) entry["parent"] = model.name;
  return entry;
}

}  // namespace

Service::Service(const ServedModel& model, Engine& engine, const ServeLimits& limits)
    : model_(model), engine_(engine), limits_(limits), constraints_(model) {}

std::shared_ptr<Job> Service::start(const ChatRequest& request) {
  if (!model_.chat) {
    throw bad_request("the model has no chat template; use /v1/completions", "messages",
                      "chat_template_missing");
  }
  adapter_of(request.options.model);  // before the work of rendering
  ChatTemplateInput input;
  input.messages = request.messages;
  input.tools = request.tools;
  input.add_generation_prompt = request.add_generation_prompt;
  input.variables = Json::object();
  for (const auto& [name, token] : model_.special_tokens) input.variables[name] = token;
  input.variables.update(request.variables);
  std::string text;
  try {
    const bool with_tools = !request.tools.is_null() && model_.chat_with_tools;
    text = (with_tools ? *model_.chat_with_tools : *model_.chat).render(input).text;
  } catch (const ChatTemplateError& error) {
    throw bad_request(fmt::format("the model's chat template refuses the conversation: {}", error.what()),
                      "messages");
  }

  JobText first;
  first.request = make_request(request.options, model_.tokenizer->encode(text, false));
  if (!request.tools.is_null()) first.options.tools = model_.tools;
  std::vector<JobText> texts;
  add_choices(
      request.options, first,
      [&]() -> std::shared_ptr<TokenConstraint> {
        if (request.tool_choice > ToolChoice::automatic)
          return constraints_.tool_call(request.tools, request.tool_name);
        return request.options.format != OutputFormat::text ? constraints_.format(request.options) : nullptr;
      },
      texts);
  return Job::start(engine_, *model_.tokenizer, std::move(texts));
}

std::shared_ptr<Job> Service::start(const CompletionRequest& request) {
  adapter_of(request.options.model);
  std::vector<JobText> texts;
  for (const Prompt& prompt : request.prompts) {
    JobText first;
    std::vector<std::int32_t> ids;
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      ids = model_.tokenizer->encode(*text);
    } else {
      ids = std::get<std::vector<std::int32_t>>(prompt);
      const std::int64_t vocabulary = model_.tokenizer->vocab_size();
      for (const std::int32_t id : ids)
        if (id >= vocabulary)
          throw bad_request(fmt::format("token id {} lies outside of the vocabulary of {}", id, vocabulary),
                            "prompt");
    }
    if (request.echo) first.echo = model_.tokenizer->decode(ids);
    constexpr std::size_t kContext = 8;  // tokens that say how a text goes on: with a blank or without
    first.context.assign(ids.end() - static_cast<std::ptrdiff_t>(std::min(kContext, ids.size())), ids.end());
    first.request = make_request(request.options, std::move(ids));
    add_choices(
        request.options, first,
        [&]() -> std::shared_ptr<TokenConstraint> {
          return request.options.format != OutputFormat::text ? constraints_.format(request.options)
                                                              : nullptr;
        },
        texts);
  }
  return Job::start(engine_, *model_.tokenizer, std::move(texts));
}

GenerateRequest Service::make_request(const CompletionOptions& options,
                                      std::vector<std::int32_t> prompt) const {
  const std::int64_t context = engine_.context();
  const auto size = static_cast<std::int64_t>(prompt.size());
  if (prompt.empty()) throw bad_request("the prompt has no tokens", "prompt");
  if (size >= context) {
    throw bad_request(
        fmt::format("the prompt has {} tokens; prompt and answer together may have {}", size, context),
        "messages", "context_length_exceeded");
  }
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.sampling = options.sampling;
  request.max_tokens = std::min(options.max_tokens.value_or(context), context - size);
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
    copy.options.stop = options.stop;
    copy.options.stop_ids = copy.request.stop_ids;
    copy.options.logprobs = options.logprobs.has_value();
    copy.request.sampling.seed += static_cast<std::uint64_t>(choice);
    copy.counts_prompt = choice == 0;
    // A constraint follows one text.
    copy.request.constraint = constrain();
    texts.push_back(std::move(copy));
  }
}

std::string Service::adapter_of(const std::string& model) const {
  if (model.empty() || model == model_.name) return {};
  if (std::find(model_.adapters.begin(), model_.adapters.end(), model) != model_.adapters.end()) return model;
  throw not_found(
      fmt::format("the model '{}' does not exist; /v1/models lists those that do", model.substr(0, 100)),
      "model", "model_not_found");
}

Json Service::embed(const EmbeddingRequest& request, Usage& usage) {
  if (embedder_ == nullptr) {
    throw bad_request("no model that gives embeddings is served; start the server with one", "model",
                      "embeddings_unavailable");
  }
  if (!request.model.empty() && request.model != embedder_->name()) {
    throw not_found(fmt::format("embeddings are given by the model '{}' alone", embedder_->name()), "model",
                    "model_not_found");
  }
  if (request.dimensions && *request.dimensions != embedder_->dimension())
    throw bad_request(fmt::format("the model's vectors have {} numbers", embedder_->dimension()),
                      "dimensions");
  try {
    const Embedder::Result result = embedder_->embed(request.texts);
    usage.prompt_tokens = result.tokens;
    return embedding_reply(request, embedder_->name(), result.vectors, result.tokens);
  } catch (const ValueError& error) {
    throw bad_request(error.what(), "input");
  }
}

std::string Service::model_name(const CompletionOptions& options) const {
  return options.model.empty() ? model_.name : options.model;
}

Json Service::models() const {
  Json list = Json::array({describe(model_.name, model_, engine_.context())});
  for (const std::string& name : model_.adapters) list.push_back(describe(name, model_, engine_.context()));
  if (embedder_ != nullptr) list.push_back(describe(embedder_->name(), model_, 0));
  return {{"object", "list"}, {"data", std::move(list)}};
}

Json Service::model(const std::string& name) const {
  if (embedder_ != nullptr && name == embedder_->name()) return describe(name, model_, 0);
  adapter_of(name);
  return describe(name, model_, engine_.context());
}

}  // namespace caldera::serve
