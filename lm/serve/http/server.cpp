#include "lm/serve/http/server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <chrono>
#include <random>
#include <thread>

#include "engine/base/error.h"
#include "lm/serve/http/answers.h"
#include "lm/serve/http/connection_threads.h"
#include "lm/serve/http/guard.h"
#include "lm/serve/http/listening.h"
#include "lm/serve/http/peer.h"
#include "lm/serve/page.h"

namespace caldera::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kJson = "application/json";
constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kCompletions = "/v1/completions";
constexpr const char* kEmbeddings = "/v1/embeddings";
constexpr const char* kModels = "/v1/models";

void set_error(httplib::Response& response, const ApiError& error) {
  response.status = error.status();
  if (error.retry_after() > 0) response.set_header("Retry-After", std::to_string(error.retry_after()));
  if (error.status() == 401) response.set_header("WWW-Authenticate", "Bearer");
  response.set_content(dump(error.json()), kJson);
}

// The methods of a path that there is, for the header Allow; empty for any other.
std::string methods_of(const std::string& path) {
  if (path == kChat || path == kCompletions || path == kEmbeddings) return "POST";
  const bool read = path == "/" || path == "/health" || path == "/metrics" || path == kModels ||
                    path.starts_with(std::string(kModels) + "/");
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

// Whether the connection of the request that this thread answers ends behind the answer: what the client
// still sends of the request must not be read as the next one. Only reading tells cpp-httplib so, and not
// before the answer is written.
thread_local bool closes = false;

std::string make_nonce() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(Service& service, ServerOptions options)
      : service_(service),
        options_(std::move(options)),
        guard_({options_.host, options_.api_key, options_.origins}),
        answers_(service, metrics_) {
    configure();
    route();
  }
  ~Impl() { stop(); }

  int bind() {
    const int port = bind_alone(server_, options_.host, options_.port);
    bound_ = true;
    return port;
  }

  void start() {
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  void stop() {
    answers_.close();
    if (!thread_.joinable()) return;
    const auto deadline = Clock::now() + std::chrono::seconds(service_.limits().drain_seconds);
    while (metrics_.active() > 0 && Clock::now() < deadline && !hurried_)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    answers_.cancel_all();
    // cpp-httplib cuts off streams that are sent when it stops; they have been told to end.
    const auto last = Clock::now() + std::chrono::seconds(2);
    while (metrics_.active() > 0 && Clock::now() < last)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    server_.stop();
    thread_.join();
  }

  void hurry() { hurried_ = true; }
  const Metrics& metrics() const { return metrics_; }

 private:
  void configure() {
    const ServeLimits& limits = service_.limits();
    // Twice the clients: connections that wait for a next request, and those that are refused, take one too.
    const auto threads = static_cast<std::size_t>(2 * limits.max_clients + 16);
    server_.new_task_queue = [threads] { return new ConnectionThreads(threads); };
    server_.set_payload_max_length(limits.max_body);
    server_.set_read_timeout(limits.read_seconds);
    server_.set_write_timeout(limits.write_seconds);
    server_.set_keep_alive_max_count(1000);
    server_.set_tcp_nodelay(true);
    server_.set_pre_routing_handler([this](const auto& request, auto& response) {
      guard_.allow_origin(request, response);
      if (!ConnectionThreads::refuses_here()) return httplib::Server::HandlerResponse::Unhandled;
      set_error(response, unavailable("the server has as many connections as it may; try again later"));
      closes = true;
      return httplib::Server::HandlerResponse::Handled;
    });
    server_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty() || response.status == 499) return;
      set_error(response, plain_error(request, response.status));
      if (response.status == 405) response.set_header("Allow", methods_of(request.path));
    });
    server_.set_logger([](const httplib::Request& request, const httplib::Response&) {
      if (closes) Peer(request.remote_addr, request.remote_port, request.local_port).stop_reading();
      closes = false;
    });
    server_.set_exception_handler([](const auto&, httplib::Response& response, const std::exception_ptr&) {
      set_error(response, server_error("the server failed"));
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
      response.set_content(R"({"status":"ok"})", kJson);
    });
    get("/metrics", true, [this](const auto&, httplib::Response& response) {
      response.set_content(metrics_.text(service_.status()), "text/plain; version=0.0.4");
    });
    get(kModels, true, [this](const auto&, httplib::Response& response) {
      response.set_content(dump(service_.models()), kJson);
    });
    get("/v1/models/(.+)", true, [this](const httplib::Request& request, httplib::Response& response) {
      response.set_content(dump(service_.model(request.matches[1])), kJson);
    });
    post(kChat, Endpoint::chat);
    post(kCompletions, Endpoint::completions);
    post(kEmbeddings, Endpoint::embeddings);
    server_.Options(".*", [](const auto&, httplib::Response& response) { response.status = 204; });
  }

  std::shared_ptr<RequestLog> make_log(const httplib::Request& request, const std::string& endpoint) {
    return std::make_shared<RequestLog>(metrics_, options_.log,
                                        fmt::format("{}:{}", request.remote_addr, request.remote_port),
                                        request.method, endpoint);
  }

  /// Runs a handler: what it refuses becomes the answer.
  template <class Handle>
  void guarded(httplib::Response& response, RequestLog& log, const Handle& handle) {
    try {
      handle();
      return;
    } catch (const ApiError& error) {
      set_error(response, error);
      log.end(fmt::format("refused: {}", error.what()));
    } catch (const std::exception& error) {
      set_error(response, server_error("the server failed"));
      log.end(fmt::format("failed: {}", error.what()));
    }
    log.status(response.status);
  }

  template <class Handle>
  void get(const std::string& pattern, bool needs_key, Handle handle) {
    server_.Get(pattern, [=, this](const httplib::Request& request, httplib::Response& response) {
      const auto log = make_log(request, pattern);
      guarded(response, *log, [&] {
        guard_.check_site(request);
        if (needs_key) guard_.check_key(request);
        handle(request, response);
        response.status = 200;
        log->status(200);
      });
    });
  }

  void post(const char* path, Endpoint endpoint) {
    server_.Post(path, [=, this](const httplib::Request& request, httplib::Response& response,
                                 const httplib::ContentReader& reader) {
      const auto log = make_log(request, path);
      guarded(response, *log, [&] {
        const std::string body = read_body(request, response, reader);
        guard_.check_site(request);
        guard_.check_key(request);
        answers_.answer(endpoint, request, body, response, log);
      });
    });
  }

  /// Reads the body piece by piece: cpp-httplib itself bounds neither one in chunks nor one that is
  /// compressed, nor the time it takes.
  std::string read_body(const httplib::Request& request, httplib::Response& response,
                        const httplib::ContentReader& reader) {
    const ServeLimits& limits = service_.limits();
    if (request.is_multipart_form_data()) {
      closes = true;
      throw ApiError(415, "invalid_request_error", "the body must be JSON", {}, "unsupported_media_type");
    }
    std::string body;
    const auto deadline = Clock::now() + std::chrono::seconds(3 * limits.read_seconds);
    bool too_large = false;
    bool too_slow = false;
    const bool complete = reader([&](const char* data, std::size_t size) {
      too_large = body.size() + size > limits.max_body;
      too_slow = Clock::now() > deadline;
      if (too_large || too_slow) return false;
      body.append(data, size);
      return true;
    });
    if (complete) return body;
    closes = true;
    if (too_large || response.status == 413)
      throw ApiError(413, "invalid_request_error",
                     fmt::format("the body is larger than {} bytes", limits.max_body), {}, "body_too_large");
    if (too_slow) throw ApiError(408, "invalid_request_error", "the body took too long to come");
    throw bad_request("the body could not be read");
  }

  Service& service_;
  ServerOptions options_;
  Metrics metrics_;
  Guard guard_;
  Answers answers_;
  httplib::Server server_;
  std::thread thread_;
  std::atomic<bool> hurried_{false};
  bool bound_ = false;
};

HttpServer::HttpServer(Service& service, ServerOptions options)
    : impl_(std::make_unique<Impl>(service, std::move(options))) {}
HttpServer::~HttpServer() = default;
int HttpServer::bind() { return impl_->bind(); }
void HttpServer::start() { impl_->start(); }
void HttpServer::stop() { impl_->stop(); }
void HttpServer::hurry() { impl_->hurry(); }
const Metrics& HttpServer::metrics() const { return impl_->metrics(); }

}  // namespace caldera::serve
