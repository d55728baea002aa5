// Engine: what continues prompts for the server.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lm/generate/batch/batch_generator.h"

namespace caldera::serve {

/// Continues many prompts at once on a thread of its own. The functions may be called from any thread; events
/// arrive on the engine's.
class Engine {
 public:
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Submits like BatchGenerator::submit: throws QueueFull, or ValueError for a request that is at fault.
  virtual RequestId submit(GenerateRequest request) = 0;
  /// Cancels like BatchGenerator::cancel.
  virtual bool cancel(RequestId id) = 0;
  virtual BatchStatus status() const = 0;
  /// Positions of one request, prompt and generated together.
  virtual std::int64_t context() const = 0;
  /// Loads and forgets adapters like BatchGenerator's. An engine that has none throws ValueError.
  virtual void load_adapter(const std::string& name, const std::filesystem::path& dir);
  virtual void unload_adapter(const std::string& name);
  /// Says why nothing is computed any more, or not for long: a sentence; empty where all is well.
  virtual std::string failure() const { return {}; }

 protected:
  Engine() = default;
};

}  // namespace caldera::serve
