// Service: what the server does, whatever carries the requests: it makes prompts of them and starts them.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lm/generate/speculation.h"
#include "lm/serve/engine/embedder.h"
#include "lm/serve/engine/engine.h"
#include "lm/serve/protocol/chat_request.h"
#include "lm/serve/protocol/completion_request.h"
#include "lm/serve/protocol/embedding_request.h"
#include "lm/serve/protocol/rerank_request.h"
#include "lm/serve/protocol/token_request.h"
#include "lm/serve/service/breaker_tokens.h"
#include "lm/serve/service/constraints.h"
#include "lm/serve/service/job.h"
#include "lm/serve/service/served_model.h"

namespace caldera::serve {

/// May be used from any thread.
class Service {
 public:
  /// These keep references. Without an engine there are vectors alone.
  Service(const ServedModel& model, Engine& engine, const ServeLimits& limits = {});
  Service(const ServedModel& model, Embedder& embedder, const ServeLimits& limits = {});

  /// Start a request. They throw ApiError where it is refused.
  std::shared_ptr<Job> start(const ChatRequest& request);
  std::shared_ptr<Job> start(const CompletionRequest& request);

  /// Answer requests about tokens: the ids of a text or a conversation, the text of ids, a conversation as
  /// the model's template writes it, and the number of its tokens. They throw ApiError where they are
  /// refused.
  Json tokenize(const TokenizeRequest& request) const;
  Json detokenize(const DetokenizeRequest& request) const;
  Json apply_template(const ChatRequest& request) const;
  Json count_tokens(const ChatRequest& request) const;

  /// Answers a request for vectors; null once `go_on` says no, which is asked every now and then. Throws
  /// ApiError where it is refused.
  Json embed(const EmbeddingRequest& request, Usage& usage, const std::function<bool()>& go_on);
  /// Scores documents by how near their vectors are to the query's (their cosine), likewise.
  Json rerank(const RerankRequest& request, Usage& usage, const std::function<bool()>& go_on);
  /// Drafts every text from now on; `speculation` must outlive the service. Before any request.
  void set_speculation(const Speculation& speculation) { speculation_ = &speculation; }
  /// Makes vectors with this from now on; it must outlive the service. Before any request.
  void set_embedder(Embedder& embedder) { embedder_ = &embedder; }

  /// The name that answers carry: the one asked for.
  std::string model_name(const CompletionOptions& options) const;
  /// Load an adapter folder under a name, and forget one; requests that have it go on with it. Throw
  /// ApiError: 400 where the folder is none, 404 where there is no adapter of that name.
  void load_adapter(const std::string& name, const std::filesystem::path& dir, bool replaces);
  void unload_adapter(const std::string& name);
  /// Says where adapters are that load_adapter() loaded, by their names.
  std::map<std::string, std::filesystem::path> loaded_adapters() const;
  /// Says why nothing is computed; empty where all is well.
  std::string failure() const { return engine_ == nullptr ? std::string() : engine_->failure(); }

  /// Names what requests may ask for: the model, its adapters, the embedder.
  std::vector<std::string> model_names() const;
  /// Answers of /v1/models and /v1/models/NAME. The latter throws ApiError 404.
  Json models() const;
  Json model(const std::string& name) const;

  /// Whether there is an engine.
  bool generates() const { return engine_ != nullptr; }
  const ServedModel& served() const { return model_; }
  const ServeLimits& limits() const { return limits_; }
  BatchStatus status() const { return engine_ == nullptr ? BatchStatus{} : engine_->status(); }

 private:
  /// Throws ApiError 400 where nothing is generated here.
  Engine& engine() const;
  std::string render(const ChatRequest& request) const;
  /// A prompt as text and as tokens.
  struct Rendered {
    std::string text;
    std::vector<std::int32_t> ids;
  };
  Rendered prompt_of(const ChatRequest& request) const;
  std::int64_t room_of(const CompletionOptions& options) const;
  void keep_last(const CompletionOptions& options, std::vector<std::int32_t>& ids) const;
  std::vector<std::int32_t> tokens_of(const Prompt& input) const;
  void require_embedder(const std::string& model) const;
  std::vector<std::vector<float>> vectors_of(const std::vector<Prompt>& inputs, Usage& usage,
                                             const std::function<bool()>& go_on) const;
  Json describe(const std::string& name) const;
  std::string adapter_of(const std::string& model) const;
  bool has_adapter(const std::string& name) const;
  GenerateRequest make_request(const CompletionOptions& options, std::vector<std::int32_t> prompt) const;
  void add_choices(const CompletionOptions& options, const JobText& text,
                   const std::function<std::shared_ptr<TokenConstraint>()>& constrain,
                   std::vector<JobText>& texts) const;

  const ServedModel& model_;
  Engine* engine_ = nullptr;
  Embedder* embedder_ = nullptr;
  ServeLimits limits_;
  Constraints constraints_;
  mutable BreakerTokens breakers_;
  const Speculation* speculation_ = nullptr;
  mutable std::mutex adapters_mutex_;
  std::vector<std::string> adapters_;
  std::map<std::string, std::filesystem::path> folders_;  // of adapters that load_adapter() loaded
};

}  // namespace caldera::serve
