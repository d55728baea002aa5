#include "lm/serve/model_server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "engine/base/error.h"
#include "engine/graph/default_device.h"
#include "lm/formats/config/generation_config.h"
#include "lm/generate/batch/batch_generator.h"
#include "lm/models/registry.h"
#include "lm/serve/engine/batch_engine.h"
#include "lm/serve/engine/model_embedder.h"
#include "lm/serve/http/server.h"
#include "lm/serve/http/stop_signal.h"
#include "lm/serve/service/load_model.h"

namespace caldera::serve {
namespace {

// Sockets of clients, most of which wait.
constexpr rlim_t kFiles = 8192;

void raise_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kFiles) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, kFiles);
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// An address as it stands in a URL.
std::string in_url(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

/// What stands first of what is given.
template <class T>
void set(T& value, const std::optional<T>& first, const std::optional<T>& second) {
  value = first ? *first : second.value_or(value);
}

void set_defaults(SamplingOptions& sampling, const SamplingDefaults& given,
                  const std::filesystem::path& dir) {
  GenerationConfig config;
  if (given.from_model) config = load_generation_config(dir);
  if (!config.do_sample.value_or(false)) config.temperature.reset();
  set(sampling.temperature, given.temperature, config.temperature);
  set(sampling.top_k, given.top_k, config.top_k);
  set(sampling.top_p, given.top_p, config.top_p);
  set(sampling.min_p, given.min_p, config.min_p);
  set(sampling.repetition_penalty, given.repetition_penalty, config.repetition_penalty);
  sampling.validate();
}

void refuse(bool given, const char* what) {
  if (given) throw ValueError(what);
}

}  // namespace

class ModelServer::Impl {
 public:
  Impl(const std::filesystem::path& dir, ModelServerOptions options) : options_(std::move(options)) {
    const Device device = options_.device.value_or(default_device());
    if (options_.embeddings || is_embedding_model(dir))
      open_embedder(dir, device);
    else
      open_generator(dir, device);
    raise_files();
    server_.emplace(*service_, options_.http);
  }

  int start() {
    const int port = server_->bind();
    server_->start();
    url_ = fmt::format("http://{}:{}", in_url(options_.http.host), port);
    return port;
  }
  void stop() { server_->stop(); }
  void hurry() { server_->hurry(); }

  const std::string& url() const { return url_; }
  const ServedModel& served() const { return served_; }
  const std::string& problem() const { return problem_; }
  bool generates() const { return service_->generates(); }
  const SamplingOptions& sampling() const { return options_.limits.sampling; }
  std::int64_t context() const { return engine_ ? engine_->context() : embedder_->max_tokens(); }

 private:
  void open_embedder(const std::filesystem::path& dir, Device device) {
    refuse(!options_.adapters.empty(), "embeddings are made without adapters");
    refuse(options_.cache_type != CacheType::model, "embeddings are made without a cache of keys and values");
    refuse(options_.speculation.drafts(), "embeddings are made without a draft model and without look-up");
    served_ = load_served_embedder(dir);
    if (!options_.name.empty()) served_.name = options_.name;
    embedder_.emplace(EmbeddingModel::from_pretrained(dir, device, options_.dtype), served_.name,
                      ModelEmbedder::Options{options_.pooling, options_.matryoshka});
    service_.emplace(served_, *embedder_, options_.limits);
  }

  void open_generator(const std::filesystem::path& dir, Device device) {
    refuse(options_.pooling.has_value() || options_.matryoshka,
           "pooling and shortened vectors are for models of embeddings");
    model_ = load_causal_lm(dir, device, options_.dtype, halves_for_inference(device));
    model_->set_activations(options_.activations);
    model_->set_cache_type(options_.cache_type);
    served_ = load_served_model(dir, model_->config(), problem_);
    if (!options_.name.empty()) served_.name = options_.name;
    served_.split_thinking = options_.split_thinking;
    served_.lenient_schemas = options_.lenient_schemas;
    speculation_.emplace(*model_, options_.speculation);
    generator_.emplace(*model_, options_.batch);
    for (const auto& [name, folder] : options_.adapters) {
      if (name == served_.name) throw ValueError("adapter '" + name + "' has the model's own name");
      generator_->load_adapter(name, folder);
      served_.adapters.push_back(name);
    }
    engine_.emplace(*generator_, generator_->limits().max_context);
    set_defaults(options_.limits.sampling, options_.sampling, dir);
    service_.emplace(served_, *engine_, options_.limits);
    service_->set_speculation(*speculation_);
  }

  // In the order in which they refer to one another.
  ModelServerOptions options_;
  std::unique_ptr<CausalLM> model_;
  ServedModel served_;
  std::string problem_;
  std::string url_;
  std::optional<Speculation> speculation_;
  std::optional<BatchGenerator> generator_;
  std::optional<BatchEngine> engine_;
  std::optional<ModelEmbedder> embedder_;
  std::optional<Service> service_;
  std::optional<HttpServer> server_;
};

ModelServer::ModelServer(const std::filesystem::path& model, ModelServerOptions options)
    : impl_(std::make_unique<Impl>(model, std::move(options))) {}
ModelServer::~ModelServer() = default;

int ModelServer::start() { return impl_->start(); }
const std::string& ModelServer::url() const { return impl_->url(); }
void ModelServer::stop() { impl_->stop(); }
void ModelServer::hurry() { impl_->hurry(); }

void ModelServer::run(const std::function<void()>& on_start, const std::function<void()>& on_stop) {
  const StopSignal signal;  // before anyone knows that there is something to stop
  start();
  if (on_start) on_start();
  signal.wait();
  if (on_stop) on_stop();
  std::thread second([&] {
    signal.wait();
    hurry();
  });
  stop();
  signal.wake();
  second.join();
}

const std::string& ModelServer::name() const { return impl_->served().name; }
std::vector<std::string> ModelServer::adapters() const { return impl_->served().adapters; }
std::int64_t ModelServer::context() const { return impl_->context(); }
bool ModelServer::generates() const { return impl_->generates(); }
const SamplingOptions& ModelServer::sampling() const { return impl_->sampling(); }
const std::string& ModelServer::chat_problem() const { return impl_->problem(); }

}  // namespace caldera::serve
