// caldera serve: an HTTP server that speaks OpenAI's API.
#include "cli/arguments/command.h"
#include "cli/arguments/model_flags.h"

#if CALDERA_HAS_SERVE
#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/arguments/domains.h"
#include "cli/files/inputs.h"
#include "cli/generation/speculation_flags.h"
#include "engine/base/byte_size.h"
#include "lm/base/atomic_file.h"
#include "lm/formats/hub_cache.h"
#include "lm/serve/model_server.h"
#endif

namespace caldera::cli {
namespace {

#if CALDERA_HAS_SERVE

class ServeCommand : public Command {
 public:
  ServeCommand() : Command("serve", "Answer requests of OpenAI's API over HTTP, with a page to chat") {}

 protected:
  void add_options(Arguments& args) override {
    args.option(
            "--model", models_,
            "Model folder or .gguf file; given several times, as NAME=DIR, requests choose by name, and all "
            "but the first are opened when they are asked for")
        .type_name("[NAME=]DIR")
        .repeatable()
        .required();
    args.option(
            "--max-models", options_.max_models,
            "Models that are open at once, 2 or more of several; the one that was not used for longest is "
            "closed (0: all)")
        .type_name("N")
        .check(integer_in(0, 1000))
        .show_default();
    args.option("--adapter", adapters_, "LoRA adapter to load; requests name it as their model (repeatable)")
        .type_name("NAME=DIR")
        .repeatable();
    args.option("--name", options_.name, "What requests call the model (default: its folder's name)")
        .type_name("NAME");
    args.option("--host", options_.http.host, "Address to listen at; 0.0.0.0 for all")
        .type_name("ADDRESS")
        .show_default();
    args.option("--port", options_.http.port, "Port; 0 takes a free one")
        .type_name("N")
        .check(integer_in(0, 65535))
        .show_default();
    args.option("--api-key", options_.http.api_key,
                "Key that requests must carry (default: $CALDERA_API_KEY, else none)")
        .type_name("KEY");
    args.option("--api-keys", api_keys_,
                "File of keys with limits: {\"keys\": [{\"name\", \"key\" or \"sha256\", "
                "\"requests_per_minute\", \"tokens_per_minute\", \"clients\"}]}")
        .type_name("FILE");
    args.option("--tls-cert", tls_certificate_, "Certificate chain (PEM): serve HTTPS").type_name("FILE");
    args.option("--tls-key", tls_key_, "Private key of the certificate (PEM)").type_name("FILE");
    args.option("--log-format", log_format_, "Lines of the log: text, or json for an object a request")
        .type_name("F")
        .one_of({"text", "json"})
        .show_default();
    args.flag(
        "--adapter-updates", options_.http.adapter_updates,
        "Let requests load and unload adapters (/v1/load_lora_adapter, /v1/unload_lora_adapter): who may "
        "ask may name any folder of this machine");
    args.option("--allow-origin", options_.http.origins,
                "Site whose pages may send requests, as https://example.org; * for any (repeatable)")
        .type_name("ORIGIN")
        .repeatable();
    args.option("--max-clients", options_.limits.max_clients,
                "Requests answered at once; more are told to come later")
        .type_name("N")
        .check(integer_in(1, 256))
        .show_default();
    args.option("--max-batch", options_.batch.max_batch, "Texts computed at once")
        .type_name("N")
        .check(integer_in(1, 256))
        .show_default();
    args.option("--context", options_.batch.max_context,
                "Tokens of a prompt and its answer together at most (default: what the model has)")
        .type_name("N")
        .check(integer_in(1, 1 << 24));
    args.option("--cache-positions", options_.batch.cache_positions,
                "Tokens whose keys and values are kept, of all texts together (default: --max-batch times "
                "--context, 2048 at most)")
        .type_name("N")
        .check(integer_in(1, std::int64_t{1} << 32));
    args.option("--timeout", options_.limits.request_seconds, "Seconds after which an answer is broken off")
        .type_name("N")
        .check(integer_in(1, 86400))
        .show_default();
    sampling_.temperature = 1;
    declare_sampling(args, sampling_);
    for (const char* flag : {"--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty"})
      sampling_options_.push_back(args.get(flag));
    args.option("--chat-template", chat_template_,
                "Chat template in place of the model's: a file, or the template itself (Jinja)")
        .type_name("FILE|TEXT")
        .check(not_empty());
    args.option("--system-prompt", options_.system_prompt,
                "What the system says in conversations where the request has no message of it")
        .type_name("TEXT");
    args.option("--generation-config", generation_config_,
                "Where requests and flags say nothing of sampling: auto takes the model's "
                "generation_config.json, none OpenAI's defaults")
        .type_name("C")
        .one_of({"auto", "none"})
        .show_default();
    declare_dtype_or_auto(args, dtype_);
    declare_activations(args, activations_);
    declare_cache_type(args, cache_type_);
    speculation_.declare(args);
    args.option(
            "--reasoning-format", reasoning_,
            "Where an answer's thinking goes: into reasoning_content, or left in content as it is written")
        .type_name("F")
        .one_of({"deepseek", "none"})
        .show_default();
    args.option(
            "--prompt-cache", prompt_cache_,
            "Folder where keys and values of prompts are kept, so that a server that begins again need not "
            "compute them again")
        .type_name("DIR")
        .check(not_empty());
    args.option("--prompt-cache-size", prompt_cache_size_,
                "Bytes that it may have, such as 4GiB; what was not used for longest goes")
        .type_name("SIZE")
        .show_default();
    args.flag("--lenient-schemas", options_.lenient_schemas,
              "Hold answers to JSON schemas as far as they can be held, and pass over the rest, instead of "
              "refusing schemas that cannot be held as a whole");
    args.flag("--embeddings", options_.embeddings,
              "Serve /v1/embeddings alone, also with a model that generates text (models made for embeddings "
              "need no flag)");
    pooling_option_ = declare_pooling(args, pooling_);
    args.flag(
        "--matryoshka", options_.matryoshka,
        "Let requests shorten embeddings (\"dimensions\"): for models that were trained for it and whose "
        "config.json does not say so");
    add_memory_limit(args);
  }

  void run() override {
    share_heap();
    read_models();
    if (tls_certificate_.empty() != tls_key_.empty())
      throw UsageError("--tls-cert and --tls-key go together");
    options_.http.api_keys = api_keys_;
    options_.http.tls_certificate = tls_certificate_;
    options_.http.tls_key = tls_key_;
    options_.http.json_log = log_format_ == "json";
    options_.adapters = parse_adapters();
    if (options_.http.api_key.empty())
      if (const char* key = std::getenv("CALDERA_API_KEY")) options_.http.api_key = key;
    options_.prompt_cache = prompt_cache_;
    options_.prompt_cache_bytes = parse_bytes(prompt_cache_size_, "--prompt-cache-size");
    options_.speculation = speculation_.options();
    options_.sampling = sampling_defaults();
    options_.chat_template = chat_template();
    options_.split_thinking = reasoning_ == "deepseek";
    if (pooling_option_.given()) options_.pooling = pooling_of(pooling_);
    options_.device = open_device();
    check_kind();
    options_.dtype = parse_dtype(dtype_, model_, *options_.device);
    options_.activations = parse_activations(activations_);
    options_.cache_type = parse_cache_type(cache_type_);
    options_.http.log = [this](const std::string& line) { note(line); };
    serve::ModelServer server(model_, options_);
    if (!server.chat_problem().empty()) note(fmt::format("no chat: {}", server.chat_problem()));
    server.run([&] { tell_start(server); },
               [this] {
                 note("stopping: no new requests; those under way may end (a second signal breaks them off)");
               });
    note("stopped");
  }

 private:
  /// Lets all threads share one heap. With a heap for some threads each, as glibc has it, what one thread
  /// made and another freed is of no use to most: the memory of a server with 64 clients grew for as long as
  /// it ran.
  static void share_heap() {
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
#endif
  }

  /// Takes the models: a path alone, or NAME=PATH, which needs be where there are several.
  void read_models() {
    for (std::size_t i = 0; i < models_.size(); ++i) {
      const std::string& text = models_[i];
      const std::size_t equals = text.find('=');
      const bool named = equals != std::string::npos && equals > 0 && !std::filesystem::exists(text);
      if (!named && i > 0)
        throw UsageError(fmt::format("--model: '{}' is not NAME=DIR, as several models need", text));
      const std::string path = named ? text.substr(equals + 1) : text;
      if (i > 0)
        options_.more_models.emplace_back(text.substr(0, equals), model_path(path));
      else if (named && !options_.name.empty())
        throw UsageError("--name: the model has a name already, in --model NAME=DIR");
      else if (named)
        options_.name = text.substr(0, equals);
      if (i == 0) model_ = model_path(path);
    }
  }

  std::vector<std::pair<std::string, std::filesystem::path>> parse_adapters() const {
    std::vector<std::pair<std::string, std::filesystem::path>> result;
    for (const std::string& text : adapters_) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
        throw UsageError(fmt::format("--adapter: '{}' is not NAME=DIR", text));
      result.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return result;
  }

  /// The text of --chat-template, or of the file that it names.
  std::string chat_template() const {
    if (chat_template_.empty()) return {};
    std::error_code ignored;  // a template may be longer than paths are
    if (std::filesystem::is_regular_file(chat_template_, ignored)) return read_text_file(chat_template_);
    if (chat_template_.find("{{") == std::string::npos && chat_template_.find("{%") == std::string::npos)
      throw UsageError(fmt::format("--chat-template: '{}' is no file, and no template, which has {{{{ or {{%",
                                   chat_template_));
    return chat_template_;
  }

  serve::SamplingDefaults sampling_defaults() const {
    serve::SamplingDefaults defaults;
    defaults.from_model = generation_config_ == "auto";
    if (sampling_options_[0].given()) defaults.temperature = sampling_.temperature;
    if (sampling_options_[1].given()) defaults.top_k = sampling_.top_k;
    if (sampling_options_[2].given()) defaults.top_p = sampling_.top_p;
    if (sampling_options_[3].given()) defaults.min_p = sampling_.min_p;
    if (sampling_options_[4].given()) defaults.repetition_penalty = sampling_.repetition_penalty;
    return defaults;
  }

  /// Refuses flags of the other kind of models.
  void check_kind() const {
    if (!options_.embeddings && !is_embedding_model(model_)) {
      if (pooling_option_.given() || options_.matryoshka)
        throw UsageError("--pooling and --matryoshka are for models of embeddings (or --embeddings)");
      return;
    }
    if (!adapters_.empty()) throw UsageError("--adapter: embeddings are made without adapters");
    if (!chat_template_.empty() || !options_.system_prompt.empty())
      throw UsageError("--chat-template and --system-prompt: models of embeddings have no conversations");
    if (const std::string flag = speculation_.given(); !flag.empty())
      throw UsageError(flag + ": embeddings are made without guesses");
  }

  void tell_sampling(const SamplingOptions& sampling) const {
    note(fmt::format(
        "requests that say nothing of sampling: temperature {:g}, top-k {}, top-p {:g}, min-p {:g}, "
        "repetition penalty {:g}",
        sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p, sampling.repetition_penalty));
  }

  void tell_start(const serve::ModelServer& server) const {
    if (server.generates()) tell_sampling(server.sampling());
    if (json()) {
      print_json({{"url", server.url()},
                  {"model", server.name()},
                  {"adapters", server.adapters()},
                  {"context", server.context()}});
      std::fflush(stdout);
    }
    note(fmt::format("serving {} at {} ({}the API is under /v1)", server.name(), server.url(),
                     server.generates() ? "a page to chat; " : "embeddings; "));
  }

  std::vector<std::string> models_;
  std::string model_;  // the first of them
  std::string api_keys_, tls_certificate_, tls_key_;
  std::string log_format_ = "text";
  std::vector<std::string> adapters_;
  std::string dtype_ = "auto";
  std::string activations_ = "rounded";
  std::string cache_type_;
  std::string prompt_cache_;
  std::string prompt_cache_size_ = "4GiB";
  SamplingOptions sampling_;
  std::vector<Option> sampling_options_;
  std::string generation_config_ = "auto";
  std::string chat_template_;
  std::string reasoning_ = "deepseek";
  std::string pooling_;
  Option pooling_option_;
  SpeculationFlags speculation_;
  serve::ModelServerOptions options_;
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
