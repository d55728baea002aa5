// BatchGenerator: continues many prompts at once. Requests join the batch and leave it between two steps
// (continuous batching, Yu et al. 2022), and share pages of one cache of keys and values (Kwon et al. 2023).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lm/generate/batch/batch_request.h"
#include "lm/models/causal_lm.h"

namespace caldera {

class BatchScheduler;

/// Continues prompts with one model. The greedy tokens of a request, and the draws of a seed, do not depend
/// on what else is in the batch, but for rounding.
///
/// Threads: every function may be called from any thread at any time; step(), run() and load_adapter() wait
/// for one another. The model is used by them alone: nobody else may use it meanwhile. Events are delivered
/// by step(), by whoever calls it.
class BatchGenerator {
 public:
  /// Keeps a reference to `model` and puts it into evaluation mode. The cache's memory is taken now. Throws
  /// ValueError for limits out of their domains.
  explicit BatchGenerator(CausalLM& model, const BatchLimits& limits = {});
  ~BatchGenerator();  // requests that are left get no event
  BatchGenerator(const BatchGenerator&) = delete;
  BatchGenerator& operator=(const BatchGenerator&) = delete;

  /// Puts a request in the queue and wakes wait(). Throws QueueFull, or ValueError (the request is at fault:
  /// HTTP 400) for an empty prompt, an id outside of the vocabulary, a prompt that does not fit the context,
  /// options out of their domains, or (UnknownAdapter) an adapter that is not loaded. Throws DeviceError once
  /// the device has failed.
  RequestId submit(GenerateRequest request);
  /// Ends a request before the next step; its last event is `cancelled`, and it is the only one with a
  /// finish. Returns false where there is no such request any more, or its last event is being delivered.
  bool cancel(RequestId id);

  /// Admits requests, computes one piece of prompts and one token for every request past its prompt, and
  /// delivers events. Returns whether there is more to do. A request that fails does not disturb the others,
  /// nor does a call of the model that fails for its sake. Where the cache is lost for want of memory, every
  /// running request ends as failed; where the device is lost (DeviceError), every request, and submit()
  /// throws from then on. Nothing of it is thrown here.
  bool step();
  /// Steps until nothing is left to do.
  void run();
  /// Blocks until there is something to do (true) or `seconds` have passed (false).
  bool wait(double seconds);

  /// Loads an adapter folder under a name, or replaces it for requests from now on; any number of adapters
  /// share a batch. It waits for the step that is under way, not for the batch. Not from an event's receiver.
  /// Throws FileError as caldera::load_adapter, ValueError for an empty name; nothing is changed then.
  void load_adapter(const std::string& name, const std::filesystem::path& dir);
  /// Forgets an adapter; requests that have it go on with it. Throws ValueError where none has that name.
  void unload_adapter(const std::string& name);
  std::vector<std::string> adapters() const;
  /// Forgets what is kept of the beginnings of texts: call it when the model's weights have changed, between
  /// requests. Not from an event's receiver.
  void forget_prefixes();

  /// Why the device has failed, after which every submit() throws; none while it works.
  std::optional<std::string> failure() const;
  BatchStatus status() const;
  const BatchLimits& limits() const;
  /// Bytes of keys and values that one position takes, all layers together.
  static std::int64_t bytes_per_position(const CausalLM& model);

 private:
  std::unique_ptr<BatchScheduler> scheduler_;
};

}  // namespace caldera
