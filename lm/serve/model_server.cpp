#include "lm/serve/model_server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lm/serve/http/server.h"
#include "lm/serve/http/stop_signal.h"
#include "lm/serve/model_shelf.h"

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

}  // namespace

class ModelServer::Impl {
 public:
  Impl(const std::filesystem::path& dir, ModelServerOptions options)
      : options_(std::move(options)), shelf_(names_of(dir, options_), options_, options_.max_models) {
    raise_files();
    server_.emplace(shelf_, options_.limits, options_.http);
  }

  int start() {
    const int port = server_->bind();
    server_->start();
    const char* scheme = options_.http.tls_certificate.empty() ? "http" : "https";
    url_ = fmt::format("{}://{}:{}", scheme, in_url(options_.http.host), port);
    return port;
  }
  std::vector<std::string> reload() {
    std::vector<std::string> told = server_->reload();
    const std::vector<std::string> of_models = shelf_.reload();
    told.insert(told.end(), of_models.begin(), of_models.end());
    return told;
  }
  /// Reloads, and tells the log.
  void reload_told() {
    const auto note = [&](const std::string& line) {
      if (options_.http.log) options_.http.log("reload: " + line);
    };
    try {
      const std::vector<std::string> told = reload();
      for (const std::string& line : told) note(line);
      if (told.empty()) note("nothing has changed");
    } catch (const std::exception& error) {
      note(error.what());
    }
  }
  void stop() { server_->stop(); }
  void hurry() { server_->hurry(); }

  const std::string& url() const { return url_; }
  std::shared_ptr<const LoadedModel> first() const { return shelf_.first(); }
  const std::string& name() const { return shelf_.first_name(); }
  bool generates() const { return shelf_.loaded().front()->generates(); }

 private:
  static ModelShelf::Names names_of(const std::filesystem::path& dir, const ModelServerOptions& options) {
    ModelShelf::Names names{{options.name, dir}};
    names.insert(names.end(), options.more_models.begin(), options.more_models.end());
    return names;
  }

  ModelServerOptions options_;
  ModelShelf shelf_;
  std::string url_;
  std::optional<HttpServer> server_;
};

ModelServer::ModelServer(const std::filesystem::path& model, ModelServerOptions options)
    : impl_(std::make_unique<Impl>(model, std::move(options))) {}
ModelServer::~ModelServer() = default;

int ModelServer::start() { return impl_->start(); }
const std::string& ModelServer::url() const { return impl_->url(); }
std::vector<std::string> ModelServer::reload() { return impl_->reload(); }
void ModelServer::stop() { impl_->stop(); }
void ModelServer::hurry() { impl_->hurry(); }

void ModelServer::run(const std::function<void()>& on_start, const std::function<void()>& on_stop) {
  const StopSignal signal;  // before anyone knows that there is something to stop
  start();
  if (on_start) on_start();
  // On a thread of its own, so that one that takes long does not hold up the end; signals that come meanwhile
  // are one.
  std::mutex mutex;
  std::condition_variable changed;
  bool asked = false;
  bool ended = false;
  std::thread reloading([&] {
    for (std::unique_lock lock(mutex);;) {
      changed.wait(lock, [&] { return asked || ended; });
      if (ended) return;
      asked = false;
      lock.unlock();
      impl_->reload_told();
      lock.lock();
    }
  });
  const auto tell = [&](bool& what) {
    const std::lock_guard lock(mutex);
    what = true;
    changed.notify_all();
  };
  while (signal.wait() == StopSignal::Told::reload) tell(asked);
  tell(ended);
  if (on_stop) on_stop();
  std::thread second([&] {
    while (signal.wait() == StopSignal::Told::reload) {
    }
    hurry();
  });
  stop();
  signal.wake();
  second.join();
  reloading.join();
}

const std::string& ModelServer::name() const { return impl_->name(); }
std::vector<std::string> ModelServer::adapters() const { return impl_->first()->served().adapters; }
std::int64_t ModelServer::context() const { return impl_->first()->context(); }
bool ModelServer::generates() const { return impl_->generates(); }
SamplingOptions ModelServer::sampling() const { return impl_->first()->sampling(); }
std::string ModelServer::chat_problem() const { return impl_->first()->problem(); }

}  // namespace caldera::serve
