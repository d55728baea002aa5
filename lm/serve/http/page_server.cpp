#include "lm/serve/http/page_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <chrono>
#include <thread>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/serve/http/guard.h"
#include "lm/serve/http/listening.h"
#include "lm/serve/protocol/api_error.h"

namespace caldera::serve {
namespace {

constexpr const char* kHost = "127.0.0.1";
constexpr std::size_t kThreads = 2;

}  // namespace

class PageServer::Impl {
 public:
  Impl(std::filesystem::path page, int port)
      : page_(std::move(page)), guard_({.host = kHost, .api_key = {}, .origins = {}}) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_read_timeout(5);
    server_.set_write_timeout(5);
    server_.Get("/", [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    });
    port_ = bind_alone(server_, kHost, port);
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Impl() {
    server_.stop();
    thread_.join();
  }
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
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

PageServer::PageServer(std::filesystem::path page, int port)
    : impl_(std::make_unique<Impl>(std::move(page), port)) {}
PageServer::~PageServer() = default;
int PageServer::port() const { return impl_->port(); }
std::string PageServer::url() const { return fmt::format("http://{}:{}/", kHost, port()); }

}  // namespace caldera::serve
