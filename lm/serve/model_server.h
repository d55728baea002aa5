// <caldera/serve.h>: a language model behind OpenAI's API over HTTP.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lm/serve/model_server_options.h"

namespace caldera::serve {

/// A model that generates text or gives embeddings (docs/guide/serving.md has the API). It works on threads
/// of its own; the functions below may be called from any thread.
class ModelServer {
 public:
  /// Opens the model, a folder or a .gguf file: a model made for embeddings gives those. Throws FileError
  /// where it or an adapter cannot be read, ValueError for options that do not go together. Raises the
  /// process's limit of open files to 8192, or what the system allows: each client takes one.
  explicit ModelServer(const std::filesystem::path& model, ModelServerOptions options = {});
  /// Stops, if that has not been done.
  ~ModelServer();
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  /// Listens and answers from now on; returns the port. Once. Throws FileError where the address cannot be
  /// had.
  int start();
  /// Says where it listens: "http://127.0.0.1:8080". After start().
  const std::string& url() const;
  /// Refuses new requests, waits for those under way, ServeLimits::drain_seconds at most, and ends.
  void stop();
  /// Ends those under way at once: for a stop() that another thread is in.
  void hurry();
  /// Reads keys, certificates, and the models and adapters whose files have changed again; requests under way
  /// go on with what they began with, so that a model may be in memory twice meanwhile. What cannot be read
  /// stays as it was. Returns a sentence for each. After start(); one call at a time.
  std::vector<std::string> reload();
  /// Starts, calls `on_start`, blocks until the process gets SIGINT or SIGTERM, calls `on_stop`, and stops; a
  /// second signal hurries. On SIGHUP it reloads, and tells the log of ServerOptions. Both may be empty.
  /// Throws as start().
  void run(const std::function<void()>& on_start = {}, const std::function<void()>& on_stop = {});

  /// Returns the name that requests call the model.
  const std::string& name() const;
  std::vector<std::string> adapters() const;
  /// Bounds the tokens of a request, its answer included.
  std::int64_t context() const;
  /// Whether it generates text; else it gives embeddings.
  bool generates() const;
  /// Says how tokens are drawn of requests that say nothing of it.
  SamplingOptions sampling() const;
  /// Says why there is no chat: a sentence, empty where there is. (Completions need no chat template.)
  std::string chat_problem() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caldera::serve
