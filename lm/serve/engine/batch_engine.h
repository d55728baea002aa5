// BatchEngine: a BatchGenerator on a thread of its own.
#pragma once

#include <atomic>
#include <thread>

#include "lm/serve/engine/engine.h"

namespace caldera::serve {

class BatchEngine : public Engine {
 public:
  /// Keeps a reference to `generator`, which nobody else steps from now on.
  explicit BatchEngine(BatchGenerator& generator, std::int64_t context);
  /// Ends the thread after the step under way; requests that are left get no event.
  ~BatchEngine() override;

  RequestId submit(GenerateRequest request) override { return generator_.submit(std::move(request)); }
  bool cancel(RequestId id) override { return generator_.cancel(id); }
  BatchStatus status() const override { return generator_.status(); }
  std::int64_t context() const override { return context_; }
  void load_adapter(const std::string& name, const std::filesystem::path& dir) override {
    generator_.load_adapter(name, dir);
  }
  void unload_adapter(const std::string& name) override { generator_.unload_adapter(name); }
  std::string failure() const override;

 private:
  void work();

  BatchGenerator& generator_;
  std::int64_t context_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> step_began_{0};  // milliseconds of the steady clock; 0: no step is under way
  std::thread thread_;
};

}  // namespace caldera::serve
