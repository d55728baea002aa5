// An engine that says what a test wants, token by token, and a server around it.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "lm/generate/text_decoder.h"
#include "lm/serve/http/server.h"
#include "lm/tokenizers/byte_tokenizer.h"

namespace caldera::testing {

/// Answers every request with `reply(prompt)`, a byte a token, and an eos. All requests advance together.
class FakeEngine : public serve::Engine {
 public:
  static constexpr std::int32_t kEos = 257;

  FakeEngine() : thread_([this] { work(); }) {}
  ~FakeEngine() override {
    stopping_ = true;
    thread_.join();
  }

  std::function<std::string(const std::string& prompt)> reply = [](const std::string&) {
    return std::string("Hello, world!");
  };
  std::chrono::microseconds token_time{0};
  std::int64_t max_queue = 1000;
  std::atomic<std::int64_t> cancelled{0};
  std::atomic<std::int64_t> finished{0};

  std::vector<GenerateRequest> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

  RequestId submit(GenerateRequest request) override {
    const std::lock_guard lock(mutex_);
    if (static_cast<std::int64_t>(running_.size()) >= max_queue) throw QueueFull("full");
    if (unloads) throw UnknownAdapter("no adapter is loaded");
    std::string prompt;
    for (const std::int32_t id : request.prompt)
      prompt += id < 256 ? std::string(1, static_cast<char>(id)) : "";
    seen_.push_back(request);
    seen_.back().on_event = nullptr;
    const std::string text = reply(prompt);
    TextDecoder decoder(request.text, request.stop_ids, request.max_tokens, request.prompt);
    running_.emplace(++last_, Running{std::move(request), text, std::move(decoder), 0, false});
    return last_;
  }
  bool cancel(RequestId id) override {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(id);
    if (found == running_.end()) return false;
    if (!found->second.cancelled) ++cancelled;
    return found->second.cancelled = true;
  }
  BatchStatus status() const override {
    const std::lock_guard lock(mutex_);
    BatchStatus status;
    status.running = static_cast<std::int64_t>(running_.size());
    return status;
  }
  std::int64_t context() const override { return 4096; }
  void load_adapter(const std::string& name, const std::filesystem::path& dir) override {
    if (dir == "/no/adapter") throw FileError("/no/adapter: there is no such folder");
    const std::lock_guard lock(mutex_);
    adapters[name] = dir.string();
  }
  void unload_adapter(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    adapters.erase(name);
  }
  std::string failure() const override { return broken ? "the device has failed: smoke" : ""; }

  std::map<std::string, std::string> adapters;  // that were loaded by a request
  std::atomic<bool> broken{false};
  std::atomic<bool> unloads{false};  // adapters go between a request's check and its start

 private:
  struct Running {
    GenerateRequest request;
    std::string text;
    TextDecoder decoder;
    std::int64_t said = 0;
    bool cancelled = false;
  };

  void work() {
    while (!stopping_) {
      std::vector<RequestId> ids;
      {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, running] : running_) ids.push_back(id);
      }
      for (const RequestId id : ids) step(id);
      std::this_thread::sleep_for(ids.empty() ? std::chrono::microseconds(200) : token_time);
    }
  }

  // What is to be said where that is allowed, else what ends things, else anything.
  std::int32_t allowed_token(TokenConstraint& constraint, std::int32_t said) {
    const TokenSet allowed = constraint.allowed();
    if (contains(allowed, said)) {
      constraint.accept(said);
      return said;
    }
    std::vector<std::int32_t> ids;
    for (std::int32_t id = 0; id <= kEos; ++id)
      if (contains(allowed, id)) ids.push_back(id);
    std::int32_t id = ids[random_() % ids.size()];
    for (const std::int32_t end : {kEos, '"' + 0, '}' + 0, ']' + 0})
      if (contains(allowed, end)) {
        id = end;
        break;
      }
    constraint.accept(id);
    return id;
  }

  // Token i of the prompt has the log-probability -i / 4, and is the most likely one.
  static void score(const Running& running, TokenEvent& event) {
    for (std::size_t i = 1; i < running.request.prompt.size(); ++i) {
      const TokenLogProbability one{running.request.prompt[i], -static_cast<double>(i) / 4};
      event.prompt_reports.push_back({one, {one}});
    }
  }

  void step(RequestId id) {
    TokenEvent event;
    Running* running = nullptr;
    {
      const std::lock_guard lock(mutex_);
      running = &running_.at(id);  // only this thread erases
      event.request = id;
      event.prompt_tokens = static_cast<std::int64_t>(running->request.prompt.size());
      if (running->cancelled) {
        event.finish = FinishReason::cancelled;
      } else {
        if (running->request.prompt_logprobs && running->said == 0) score(*running, event);
        const auto at = static_cast<std::size_t>(running->said++);
        event.id = at < running->text.size() ? static_cast<unsigned char>(running->text[at]) : kEos;
        if (running->request.constraint) event.id = allowed_token(*running->request.constraint, *event.id);
        event.generated_tokens = running->said;
        if (running->request.logprobs) {
          event.report = TokenReport{{*event.id, -0.5}, {}};
          for (std::int64_t i = 0; i < *running->request.logprobs; ++i)
            event.report->top.push_back({static_cast<std::int32_t>('a' + i), -1.0 - static_cast<double>(i)});
        }
        const DecodedToken decoded = running->decoder.take(*event.id);
        event.text = decoded.text;
        event.stop = decoded.stop;
        event.finish = decoded.finish;
        if (event.id == kEos) event.finish = FinishReason::stop;
        if (running->request.max_tokens == 0) {
          event.id.reset();
          event.report.reset();
          event.text.clear();
          event.finish = FinishReason::length;
        }
      }
    }
    const bool go_on = running->request.on_event(event);
    if (go_on && !event.finish) return;
    const std::lock_guard lock(mutex_);
    running_.erase(id);
    ++finished;
  }

  std::mt19937 random_{1};
  mutable std::mutex mutex_;
  std::map<RequestId, Running> running_;
  std::vector<GenerateRequest> seen_;
  RequestId last_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// A model of bytes with a simple template: "role:content\n" a message.
inline serve::ServedModel byte_model() {
  serve::ServedModel model;
  model.name = "tiny";
  model.adapters = {"poet"};
  model.tokenizer = std::make_shared<ByteTokenizer>();
  model.chat.emplace(
      "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}{% if tools %}<tool_call>{% endif %}"
      "{% if add_generation_prompt %}assistant:{% endif %}");
  model.tools = find_tool_format("<tool_call>");
  model.stop_ids = {FakeEngine::kEos};
  model.created = 1;
  return model;
}

/// A server on a free port of this machine, with what it is made of.
class TestServer {
 public:
  explicit TestServer(const serve::ServeLimits& limits = {}, serve::ServerOptions options = {})
      : model(byte_model()), service(model, engine, limits) {
    begin(std::move(options));
  }
  /// Without an engine: it gives embeddings alone.
  explicit TestServer(serve::Embedder& embedder, const serve::ServeLimits& limits = {})
      : model(byte_model()), service(model, embedder, limits) {
    begin({});
  }

  void begin(serve::ServerOptions options) {
    options.port = 0;
    server = std::make_unique<serve::HttpServer>(service, std::move(options));
    port = server->bind();
    server->start();
  }

  httplib::Client client() const {
    httplib::Client result("127.0.0.1", port);
    result.set_read_timeout(20);
    result.set_tcp_nodelay(true);  // else each request waits for an acknowledgement
    return result;
  }
  /// Waits until `condition` holds, five seconds at most.
  static bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 5000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  FakeEngine engine;
  serve::ServedModel model;
  serve::Service service;
  std::unique_ptr<serve::HttpServer> server;
  int port = 0;
};

}  // namespace caldera::testing
