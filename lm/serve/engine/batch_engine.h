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

 private:
  void work();

  BatchGenerator& generator_;
  std::int64_t context_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace caldera::serve
