#include "lm/serve/http/page_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <utility>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/serve/http/connection_server.h"
#include "lm/serve/http/guard.h"
#include "lm/serve/protocol/api_error.h"

namespace caldera::serve {
namespace {

constexpr const char* kHost = "127.0.0.1";

ConnectionOptions few_connections() {
  ConnectionOptions options;
  options.threads = 4;
  options.max_connections = 64;
  options.framing.max_body = 1024;
  options.read_seconds = 5;
  options.write_seconds = 5;
  return options;
}

}  // namespace

class PageServer::Impl {
 public:
  Impl(std::filesystem::path page, int port)
      : page_(std::move(page)), guard_({.host = kHost, .origins = {}}), server_(few_connections()) {
    server_.Get("/", [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    });
    port_ = server_.bind_alone_to(kHost, port);
    server_.start();
  }
  ~Impl() { server_.end(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  int port() const { return port_; }

 private:
  void answer(const httplib::Request& request, httplib::Response& response) const {
    response.set_header("Cache-Control", "no-store");
    try {
      guard_.check_site(request);
      response.set_content(read_text_file(page_), "text/html; charset=utf-8");
    } catch (const ApiError& error) {
      response.status = 403;
      response.set_content(std::string(error.what()) + "\n", "text/plain");
    } catch (const Error&) {
      response.status = 404;
      response.set_header("Refresh", "2");
      response.set_content("The page is not there yet.\n", "text/plain");
    }
  }

  std::filesystem::path page_;
  Guard guard_;
  ConnectionServer server_;
  int port_ = 0;
};

PageServer::PageServer(std::filesystem::path page, int port)
    : impl_(std::make_unique<Impl>(std::move(page), port)) {}
PageServer::~PageServer() = default;
int PageServer::port() const { return impl_->port(); }
std::string PageServer::url() const { return fmt::format("http://{}:{}/", kHost, port()); }

}  // namespace caldera::serve
