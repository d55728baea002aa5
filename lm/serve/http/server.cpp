#include "lm/serve/http/server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include "engine/base/error.h"
#include "lm/serve/http/answers.h"
#include "lm/serve/http/connection_server.h"
#include "lm/serve/http/guard.h"
#include "lm/serve/http/key_ring.h"
#include "lm/serve/http/tls.h"
#include "lm/serve/page.h"
#include "lm/serve/service/message_writer.h"
#include "lm/serve/service/ollama_writer.h"
#include "lm/serve/service/replies.h"

namespace caldera::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kJson = "application/json";
constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kCompletions = "/v1/completions";
constexpr const char* kEmbeddings = "/v1/embeddings";
constexpr const char* kModels = "/v1/models";
constexpr const char* kMessages = "/v1/messages";
constexpr const char* kTags = "/api/tags";
constexpr const char* kLoadAdapter = "/v1/load_lora_adapter";
constexpr const char* kUnloadAdapter = "/v1/unload_lora_adapter";

/// The paths that take a body.
constexpr std::pair<const char*, Endpoint> kPosts[] = {
    {kChat, Endpoint::chat},
    {kCompletions, Endpoint::completions},
    {kEmbeddings, Endpoint::embeddings},
    {"/v1/rerank", Endpoint::rerank},
    {"/rerank", Endpoint::rerank},
    {kMessages, Endpoint::messages},
    {"/v1/messages/count_tokens", Endpoint::count_tokens},
    {"/v1/responses", Endpoint::responses},
    {"/api/chat", Endpoint::ollama_chat},
    {"/api/generate", Endpoint::ollama_generate},
    {"/tokenize", Endpoint::tokenize},
    {"/detokenize", Endpoint::detokenize},
    {"/apply-template", Endpoint::apply_template},
};

/// Words a refusal as the API of the path does.
void set_error(const httplib::Request& request, httplib::Response& response, const ApiError& error) {
  response.status = error.status();
  if (error.retry_after() > 0) response.set_header("Retry-After", std::to_string(error.retry_after()));
  if (error.status() == 401) response.set_header("WWW-Authenticate", "Bearer");
  Json body = error.json();
  if (request.path.starts_with(kMessages)) body = message_error(error);
  if (request.path.starts_with("/api/")) body = ollama_error(error);
  response.set_content(dump(body), kJson);
}

// The methods of a path that there is, for the header Allow; empty for any other.
std::string methods_of(const std::string& path) {
  if (std::ranges::any_of(kPosts, [&](const auto& post) { return path == post.first; }) ||
      path == kLoadAdapter || path == kUnloadAdapter)
    return "POST";
  const bool read = path == "/" || path == kTags || path == "/health" || path == "/metrics" ||
                    path == kModels || path.starts_with(std::string(kModels) + "/");
  return read ? "GET, HEAD" : "";
}

// What cpp-httplib refuses on its own has no body yet.
ApiError plain_error(const httplib::Request& request, int status) {
  if (const std::string methods = methods_of(request.path); status == 404 && !methods.empty())
    return {405,
            "invalid_request_error",
            fmt::format("{} takes {}", request.path, methods),
            {},
            "method_not_allowed"};
  if (status == 404) return not_found("there is nothing at this path; docs/guide/serving.md lists paths");
  if (status == 413) return {413, "invalid_request_error", "the body is too large"};
  if (status >= 500) return server_error("the server failed");
  return {status, "invalid_request_error", "the request is malformed"};
}

// Of a request that is refused before a handler sees it.
ApiError framing_error(int status, const std::string& problem) {
  if (status == 503) return unavailable(problem);
  return {status, "invalid_request_error", problem, {}, status == 413 ? "body_too_large" : ""};
}

// As many as there may be sockets, some left for files.
std::size_t most_connections() {
  constexpr rlim_t kMost = 4096;
  constexpr rlim_t kOthers = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kOthers;
  return std::clamp<rlim_t>(limit.rlim_cur, 2 * kOthers, kMost + kOthers) - kOthers;
}

ConnectionOptions connection_options(const ServeLimits& limits, Metrics& metrics,
                                     const ServerOptions& server) {
  ConnectionOptions options;
  // Twice the clients: those that are told to come back later take a thread too.
  options.threads = static_cast<std::size_t>(2 * limits.max_clients + 16);
  options.max_connections = most_connections();
  options.framing.max_body = limits.max_body;
  options.read_seconds = limits.read_seconds;
  options.write_seconds = limits.write_seconds;
  options.refusal = [](int status, const std::string& problem) {
    return dump(framing_error(status, problem).json());
  };
  if (!server.tls_certificate.empty())
    options.tls = std::make_shared<TlsContext>(server.tls_certificate, server.tls_key);
  options.refused = [&metrics, print = server.log, json = server.json_log](
                        const ConnectionEnd& client, int status, const std::string& problem) {
    RequestLog log(metrics, print, json, {"", fmt::format("{}:{}", client.address, client.port), "-", "-"});
    log.status(status);
    log.end(fmt::format("refused: {}", problem));
  };
  return options;
}

/// The id that a client gives its request, or one of the server's.
std::string request_id(const httplib::Request& request) {
  constexpr std::size_t kMost = 128;
  const std::string given = request.get_header_value("X-Request-Id");
  const bool plain = !given.empty() && given.size() <= kMost && std::ranges::all_of(given, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  });
  return plain ? given : "req_" + random_id();
}

std::string make_nonce() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(ServiceSource& services, const ServeLimits& limits, ServerOptions options)
      : services_(services),
        limits_(limits),
        options_(std::move(options)),
        guard_({options_.host, options_.origins}),
        answers_(services, metrics_, limits_),
        server_(connection_options(limits_, metrics_, options_)) {
    read_keys(keys_);
    configure();
    route();
  }
  ~Impl() { stop(); }

  int bind() { return server_.bind_alone_to(options_.host, options_.port); }

  void start() {
    server_.start();
    started_ = true;
  }

  void stop() {
    answers_.close();
    if (!started_) return;
    const auto deadline = Clock::now() + std::chrono::seconds(limits_.drain_seconds);
    while (metrics_.active() > 0 && Clock::now() < deadline && !hurried_)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    answers_.cancel_all();
    // cpp-httplib cuts off streams that are sent when it stops; they have been told to end.
    const auto last = Clock::now() + std::chrono::seconds(2);
    while (metrics_.active() > 0 && Clock::now() < last)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    server_.end();
    started_ = false;
  }

  std::vector<std::string> reload() {
    std::vector<std::string> told;
    const auto attempt = [&](const char* what, const std::filesystem::path& file, const auto& read) {
      if (file.empty()) return;
      std::string line = fmt::format("{} read again from {}", what, file.string());
      try {
        read();
      } catch (const Error& error) {
        line = fmt::format("{} stay as they were: {}", what, error.what());
      }
      told.push_back(std::move(line));
    };
    attempt("keys", options_.api_keys, [&] {
      KeyRing keys;
      read_keys(keys);
      keys_.replace(std::move(keys));
    });
    attempt("certificates", options_.tls_certificate, [&] {
      server_.set_tls(std::make_shared<TlsContext>(options_.tls_certificate, options_.tls_key));
    });
    return told;
  }

  void hurry() { hurried_ = true; }
  const Metrics& metrics() const { return metrics_; }

 private:
  void read_keys(KeyRing& keys) const {
    if (!options_.api_key.empty()) keys.add(options_.api_key, {.name = "key"});
    if (!options_.api_keys.empty()) keys.add_file(options_.api_keys);
  }

  void configure() {
    server_.set_payload_max_length(limits_.max_body);
    server_.set_tcp_nodelay(true);
    server_.set_pre_routing_handler([this](const auto& request, auto& response) {
      guard_.allow_origin(request, response);
      // Anthropic's clients look for it without the X.
      const std::string id = request_id(request);
      response.set_header(request.path.starts_with(kMessages) ? "request-id" : "X-Request-Id", id);
      return httplib::Server::HandlerResponse::Unhandled;
    });
    server_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty() || response.status == 499) return;
      set_error(request, response, plain_error(request, response.status));
      if (response.status == 405) response.set_header("Allow", methods_of(request.path));
    });
    server_.set_exception_handler(
        [](const httplib::Request& request, httplib::Response& response, const std::exception_ptr&) {
          set_error(request, response, server_error("the server failed"));
        });
  }

  void route() {
    get("/", false, [](const auto&, httplib::Response& response) {
      const std::string nonce = make_nonce();
      std::string page = kPage;
      constexpr std::string_view kPlace = "NONCE";
      for (std::size_t at = 0; (at = page.find(kPlace, at)) != std::string::npos; at += nonce.size())
        page.replace(at, kPlace.size(), nonce);
      response.set_header("Content-Security-Policy",
                          fmt::format("default-src 'none'; connect-src 'self'; img-src data:; style-src "
                                      "'nonce-{0}'; script-src 'nonce-{0}'; base-uri 'none'; form-action "
                                      "'none'; frame-ancestors 'none'",
                                      nonce));
      response.set_header("X-Content-Type-Options", "nosniff");
      response.set_header("Referrer-Policy", "no-referrer");
      response.set_content(page, "text/html; charset=utf-8");
    });
    get("/health", false, [this](const auto&, httplib::Response& response) {
      if (answers_.closed()) throw unavailable("the server stops");
      for (const auto& service : services_.loaded())
        if (const std::string why = service->failure(); !why.empty())
          throw unavailable(fmt::format("the model '{}' gives no answers: {}", service->served().name, why));
      response.set_content(R"({"status":"ok"})", kJson);
    });
    get("/metrics", true, [this](const auto&, httplib::Response& response) {
      response.set_content(metrics_.text(services_.status()), "text/plain; version=0.0.4");
    });
    get(kModels, true,
        [this](const auto&, httplib::Response& response) { response.set_content(dump(models()), kJson); });
    get(kTags, true, [this](const auto&, httplib::Response& response) {
      response.set_content(dump(ollama_tags(services_.names(), services_.loaded().front()->served().created)),
                           kJson);
    });
    get("/v1/models/(.+)", true, [this](const httplib::Request& request, httplib::Response& response) {
      const std::string name = request.matches[1];
      const Json all = models();
      for (const Json& model : all["data"])
        if (model["id"] == name) return response.set_content(dump(model), kJson);
      services_.find(name);  // says that there is none
    });
    for (const auto& [path, endpoint] : kPosts) post(path, endpoint);
    update(kLoadAdapter, [](Service& service, const Fields& fields) {
      fields.refuse_others({"lora_name", "lora_path", "load_inplace", "base_model_name"});
      const auto name = fields.text("lora_name");
      const auto path = fields.text("lora_path");
      if (!name) fields.fail("lora_name", "is missing");
      if (!path || path->empty()) fields.fail("lora_path", "is missing");
      service.load_adapter(*name, *path, fields.flag("load_inplace").value_or(false));
      return fmt::format("Success: LoRA adapter '{}' added successfully.", *name);
    });
    update(kUnloadAdapter, [](Service& service, const Fields& fields) {
      fields.refuse_others({"lora_name", "lora_int_id"});
      const auto name = fields.text("lora_name");
      if (!name) fields.fail("lora_name", "is missing");
      service.unload_adapter(*name);
      return fmt::format("Success: LoRA adapter '{}' removed successfully.", *name);
    });
    server_.Options(".*", [](const auto&, httplib::Response& response) { response.status = 204; });
  }

  /// Models that are loaded say more of themselves.
  Json models() const {
    Json list = Json::array();
    std::vector<std::string> told;
    for (const auto& service : services_.loaded()) {
      const Json own = service->models();
      for (const Json& model : own["data"]) {
        told.push_back(model["id"]);
        list.push_back(model);
      }
    }
    for (const std::string& name : services_.names())
      if (std::ranges::count(told, name) == 0)
        list.push_back({{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "caldera"}});
    return {{"object", "list"}, {"data", std::move(list)}};
  }

  std::shared_ptr<RequestLog> make_log(const httplib::Request& request, const httplib::Response& response,
                                       const std::string& endpoint) {
    const bool is_message = request.path.starts_with(kMessages);
    return std::make_shared<RequestLog>(
        metrics_, options_.log, options_.json_log,
        RequestLog::Begin{response.get_header_value(is_message ? "request-id" : "X-Request-Id"),
                          fmt::format("{}:{}", request.remote_addr, request.remote_port), request.method,
                          endpoint});
  }

  /// Runs a handler: what it refuses becomes the answer.
  template <class Handle>
  void guarded(const httplib::Request& request, httplib::Response& response, RequestLog& log,
               const Handle& handle) {
    try {
      handle();
      return;
    } catch (const ApiError& error) {
      set_error(request, response, error);
      log.end(fmt::format("refused: {}", error.what()));
    } catch (const std::exception& error) {
      set_error(request, response, server_error("the server failed"));
      log.end(fmt::format("failed: {}", error.what()));
    }
    log.status(response.status);
  }

  template <class Handle>
  void get(const std::string& pattern, bool needs_key, Handle handle) {
    server_.Get(pattern, [=, this](const httplib::Request& request, httplib::Response& response) {
      const auto log = make_log(request, response, pattern);
      guarded(request, response, *log, [&] {
        guard_.check_site(request);
        if (needs_key) keys_.check(key_of(request));
        handle(request, response);
        response.status = 200;
        log->status(200);
      });
    });
  }

  void post(const char* path, Endpoint endpoint) {
    server_.Post(path, [=, this](const httplib::Request& request, httplib::Response& response,
                                 const httplib::ContentReader& reader) {
      const auto log = make_log(request, response, path);
      guarded(request, response, *log, [&] {
        const std::string body = read_body(request, response, reader);
        guard_.check_site(request);
        log->key(keys_.begin(key_of(request)));
        answers_.answer(endpoint, body, response, log);
      });
    });
  }

  /// A request that changes what is served.
  template <class Handle>
  void update(const char* path, Handle handle) {
    server_.Post(path, [=, this](const httplib::Request& request, httplib::Response& response,
                                 const httplib::ContentReader& reader) {
      const auto log = make_log(request, response, path);
      guarded(request, response, *log, [&] {
        const std::string body = read_body(request, response, reader);
        guard_.check_site(request);
        keys_.check(key_of(request));
        if (!options_.adapter_updates)
          throw ApiError(403, "permission_error",
                         "adapters may be changed where the server runs with "
                         "--adapter-updates",
                         {}, "adapter_updates_refused");
        const Json document = parse_body(body, limits_.max_depth);
        const Fields fields(document);
        const auto named = fields.text("base_model_name");
        const std::lock_guard one_at_a_time(services_.updates());
        response.set_content(handle(*services_.find(named.value_or("")), fields), "text/plain");
        response.status = 200;
        log->status(200);
      });
    });
  }

  /// Reads the body, which has come, piece by piece: cpp-httplib does not bound what is compressed.
  std::string read_body(const httplib::Request& request, httplib::Response& response,
                        const httplib::ContentReader& reader) {
    if (request.is_multipart_form_data())
      throw ApiError(415, "invalid_request_error", "the body must be JSON", {}, "unsupported_media_type");
    std::string body;
    bool too_large = false;
    const bool complete = reader([&](const char* data, std::size_t size) {
      too_large = body.size() + size > limits_.max_body;
      if (!too_large) body.append(data, size);
      return !too_large;
    });
    if (complete) return body;
    if (too_large || response.status == 413)
      throw ApiError(413, "invalid_request_error",
                     fmt::format("the body is larger than {} bytes", limits_.max_body), {}, "body_too_large");
    throw bad_request("the body could not be read");
  }

  ServiceSource& services_;
  const ServeLimits limits_;
  ServerOptions options_;
  Metrics metrics_;
  Guard guard_;
  KeyRing keys_;
  Answers answers_;
  ConnectionServer server_;
  std::atomic<bool> hurried_{false};
  bool started_ = false;
};

HttpServer::HttpServer(Service& service, ServerOptions options)
    : one_(std::make_unique<OneService>(service)),
      impl_(std::make_unique<Impl>(*one_, service.limits(), std::move(options))) {}
HttpServer::HttpServer(ServiceSource& services, const ServeLimits& limits, ServerOptions options)
    : impl_(std::make_unique<Impl>(services, limits, std::move(options))) {}
HttpServer::~HttpServer() = default;
int HttpServer::bind() { return impl_->bind(); }
void HttpServer::start() { impl_->start(); }
std::vector<std::string> HttpServer::reload() { return impl_->reload(); }
void HttpServer::stop() { impl_->stop(); }
void HttpServer::hurry() { impl_->hurry(); }
const Metrics& HttpServer::metrics() const { return impl_->metrics(); }

}  // namespace caldera::serve
