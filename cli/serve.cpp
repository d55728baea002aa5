// caldera serve: an HTTP server that speaks OpenAI's API.
#include "cli/arguments/model_flags.h"
#include "cli/command.h"

#if CALDERA_HAS_SERVE
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/arguments/domains.h"
#include "cli/files/inputs.h"
#include "cli/generation/speculation_flags.h"
#include "lm/models/registry.h"
#include "lm/serve/engine/batch_engine.h"
#include "lm/serve/engine/model_embedder.h"
#include "lm/serve/http/server.h"
#include "lm/serve/http/stop_signal.h"
#include "lm/serve/service/load_model.h"
#endif

namespace caldera::cli {
namespace {

#if CALDERA_HAS_SERVE

// cpp-httplib may wait by select(), which knows no more sockets.
constexpr rlim_t kMostFiles = 1024;

void limit_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= kMostFiles) return;
  limit.rlim_cur = kMostFiles;
  setrlimit(RLIMIT_NOFILE, &limit);
}

class ServeCommand : public Command {
 public:
  ServeCommand() : Command("serve", "Answer requests of OpenAI's API over HTTP, with a page to chat") {}

 protected:
  void add_options(Arguments& args) override {
    declare_model(args, model_);
    args.option("--adapter", adapters_, "LoRA adapter to load; requests name it as their model (repeatable)")
        .type_name("NAME=DIR")
        .repeatable();
    args.option("--name", name_, "What requests call the model (default: its folder's name)")
        .type_name("NAME");
    args.option("--host", options_.host, "Address to listen at; 0.0.0.0 for all")
        .type_name("ADDRESS")
        .show_default();
    args.option("--port", options_.port, "Port; 0 takes a free one")
        .type_name("N")
        .check(integer_in(0, 65535))
        .show_default();
    args.option("--api-key", options_.api_key,
                "Key that requests must carry (default: $CALDERA_API_KEY, else none)")
        .type_name("KEY");
    args.option("--allow-origin", options_.origins,
                "Site whose pages may send requests, as https://example.org; * for any (repeatable)")
        .type_name("ORIGIN")
        .repeatable();
    args.option("--max-clients", limits_.max_clients,
                "Requests answered at once; more are told to come later")
        .type_name("N")
        .check(integer_in(1, 256))
        .show_default();
    args.option("--max-batch", batch_.max_batch, "Texts computed at once")
        .type_name("N")
        .check(integer_in(1, 256))
        .show_default();
    args.option("--context", batch_.max_context,
                "Tokens of a prompt and its answer together at most (default: what the model has)")
        .type_name("N")
        .check(integer_in(1, 1 << 24));
    args.option("--cache-positions", batch_.cache_positions,
                "Tokens whose keys and values are kept, of all texts together (default: --max-batch times "
                "--context, 2048 at most)")
        .type_name("N")
        .check(integer_in(1, std::int64_t{1} << 32));
    args.option("--timeout", limits_.request_seconds, "Seconds after which an answer is broken off")
        .type_name("N")
        .check(integer_in(1, 86400))
        .show_default();
    declare_dtype(args, dtype_);
    speculation_.declare(args);
    args.option(
            "--reasoning-format", reasoning_,
            "Where an answer's thinking goes: into reasoning_content, or left in content as it is written")
        .type_name("F")
        .one_of({"deepseek", "none"})
        .show_default();
    args.flag("--embeddings", embeddings_,
              "Serve /v1/embeddings alone, also with a model that generates text (models made for embeddings "
              "need no flag)");
    pooling_option_ = declare_pooling(args, pooling_);
    args.flag(
        "--matryoshka", matryoshka_,
        "Let requests shorten embeddings (\"dimensions\"): for models that were trained for it and whose "
        "config.json does not say so");
    add_memory_limit(args);
  }

  void run() override {
    const auto adapters = parse_adapters();
    if (options_.api_key.empty())
      if (const char* key = std::getenv("CALDERA_API_KEY")) options_.api_key = key;
    const Device device = open_device();
    if (embeddings_ || SentenceModules::from_folder(model_).pooling || is_encoder(model_))
      return serve_embeddings(device);
    if (pooling_option_.given() || matryoshka_)
      throw UsageError("--pooling and --matryoshka are for models of embeddings (or --embeddings)");
    const std::unique_ptr<CausalLM> model = load_model(model_, {}, device, parse_dtype(dtype_));
    std::string problem;
    serve::ServedModel served = serve::load_served_model(model_, model->config(), problem);
    if (!problem.empty()) note(fmt::format("no chat: {}", problem));
    if (!name_.empty()) served.name = name_;
    served.split_thinking = reasoning_ == "deepseek";
    speculation_.load(*model);
    BatchGenerator generator(*model, batch_);
    for (const auto& [name, dir] : adapters) {
      if (name == served.name) throw UsageError("--adapter: '" + name + "' is the model's own name");
      generator.load_adapter(name, dir);
      served.adapters.push_back(name);
    }
    const std::int64_t context = generator.limits().max_context;
    serve::BatchEngine engine(generator, context);
    serve::Service service(served, engine, limits_);
    if (speculation_.drafts())
      service.set_drafting(
          {[this](const SamplingOptions& sampling) { return speculation_.drafter(sampling); },
           speculation_.tokens()});
    serve_until_told(service, context);
  }

 private:
  std::vector<std::pair<std::string, std::string>> parse_adapters() const {
    std::vector<std::pair<std::string, std::string>> result;
    for (const std::string& text : adapters_) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
        throw UsageError(fmt::format("--adapter: '{}' is not NAME=DIR", text));
      result.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return result;
  }

  void serve_embeddings(Device device) {
    if (!adapters_.empty()) throw UsageError("--adapter: embeddings are made without adapters");
    if (const std::string flag = speculation_.given(); !flag.empty())
      throw UsageError(flag + ": embeddings are made without guesses");
    serve::ServedModel served = serve::load_served_embedder(model_);
    if (!name_.empty()) served.name = name_;
    serve::ModelEmbedder::Options options{{}, matryoshka_};
    if (pooling_option_.given()) options.pooling = pooling_of(pooling_);
    serve::ModelEmbedder embedder(EmbeddingModel::from_pretrained(model_, device, parse_dtype(dtype_)),
                                  served.name, options);
    serve::Service service(served, embedder, limits_);
    serve_until_told(service, embedder.max_tokens());
  }

  void serve_until_told(serve::Service& service, std::int64_t context) {
    limit_files();

    const serve::StopSignal signal;
    const serve::ServedModel& served = service.served();
    options_.log = [this](const std::string& line) { note(line); };
    serve::HttpServer server(service, options_);
    const int port = server.bind();
    server.start();
    const std::string host =
        options_.host.find(':') == std::string::npos ? options_.host : "[" + options_.host + "]";
    const std::string url = fmt::format("http://{}:{}", host, port);
    if (json()) {
      print_json({{"url", url}, {"model", served.name}, {"adapters", served.adapters}, {"context", context}});
      std::fflush(stdout);
    }
    note(fmt::format("serving {} at {} ({}the API is under /v1)", served.name, url,
                     service.generates() ? "a page to chat; " : "embeddings; "));

    signal.wait();
    note("stopping: no new requests; those under way may end (a second signal breaks them off)");
    std::thread second([&] {
      signal.wait();
      server.hurry();
    });
    server.stop();
    signal.wake();
    second.join();
    note("stopped");
  }

  std::string model_;
  std::vector<std::string> adapters_;
  std::string name_;
  std::string dtype_ = "f32";
  std::string reasoning_ = "deepseek";
  std::string pooling_;
  bool embeddings_ = false;
  bool matryoshka_ = false;
  Option pooling_option_;
  serve::ServerOptions options_;
  serve::ServeLimits limits_;
  BatchLimits batch_;
  SpeculationFlags speculation_;
};

#else

class ServeCommand : public Command {
 public:
  ServeCommand() : Command("serve", "Answer requests of OpenAI's API over HTTP (not in this build)") {}

 protected:
  void add_options(Arguments& args) override { declare_model(args, model_).required(false); }
  void run() override {
    throw UsageError(
        "this build has no server: cpp-httplib was not found (libcpp-httplib-dev and pkg-config)");
  }

 private:
  std::string model_;
};

#endif

}  // namespace

CommandPtr make_serve_command() { return std::make_unique<ServeCommand>(); }

}  // namespace caldera::cli
