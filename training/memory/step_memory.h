// Fits a training step into a limit of memory: which layers are checkpointed, and what is kept of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/runtime/inspect/memory_forecast.h"
#include "lm/models/causal_lm.h"

namespace caldera {

/// Says how much of the forward pass waits for the backward pass.
enum class Checkpointing : std::uint8_t {
  none,       ///< all that it reads
  layer,      ///< of each layer its input alone: the least memory, and the forward pass runs twice
  automatic,  ///< as much as the limit allows: what is cheapest to compute again goes first
};

/// Says what becomes of a value of a layer between the passes.
enum class Fate : std::uint8_t {
  kept,        ///< it is dearer to compute again, a byte, than what had to go
  recomputed,  ///< it is cheaper
  forced,      ///< it cannot be kept: a view of another value, or the inside of an attention
};

/// Names a value that the backward pass of a layer reads.
struct LayerValue {
  std::int64_t layer = 0;
  std::string value;  ///< "matmul (64, 512)"
  std::int64_t bytes = 0;
  Fate fate = Fate::kept;
};

/// Returns the word for it: "kept".
std::string_view to_string(Fate fate);

/// Is thrown for a limit that no choice meets.
class MemoryLimitTooLow : public OutOfMemoryError {
 public:
  MemoryLimitTooLow(const std::string& what, std::uint64_t least)
      : OutOfMemoryError(what), least_bytes(least) {}
  std::uint64_t least_bytes;  ///< the smallest limit that would do
};

/// Says what was chosen, and what it is expected to take.
struct MemoryChoice {
  std::int64_t checkpointed_layers = 0;
  std::int64_t layers = 0;
  double recomputed = 0;  ///< of the layers' forward pass: 0 nothing is computed again, 1 all of it
  std::uint64_t predicted_peak_bytes = 0;  ///< in use on the device, parameters and optimiser included
  /// The least limit that leaves room for it: the peak, what the device has taken for itself, and the ends of
  /// blocks that are larger than their tensors. Argument tables of plans, which Vulkan has, come on top.
  std::uint64_t needed_bytes = 0;
  std::uint64_t limit_bytes = 0;   ///< that it was chosen for; 0: none
  std::vector<LayerValue> values;  ///< of checkpointed layers, what the backward pass reads
};

/// Returns a line for people: "memory: 1.2 GiB of 1.5 GiB predicted, 6 of 16 layers checkpointed, 21 % of
/// their forward pass again".
std::string to_text(const MemoryChoice& choice);

/// Holds the tensors of one evaluation of a step, on the largest batch there is. Nothing of it is evaluated
/// here: what the evaluation will find, and is not there yet, are stand-ins (stand_in_for()).
struct StepEvaluation {
  std::vector<LazyTensor> outputs;
  std::uint64_t awaited_bytes = 0;  ///< of all that will be in use besides what is now
};

/// Builds one.
using StepGraph = std::function<StepEvaluation()>;

/// Bytes of the device's memory.
struct MemoryBounds {
  std::uint64_t limit = 0;  ///< of all that is taken; 0: none, and automatic checkpoints nothing
  std::uint64_t own = 0;    ///< taken by the device for itself, within the limit
  /// Says what is evaluated besides the step, whatever is chosen.
  MemoryForecast besides = {};
};

/// A limit, and what is chosen for it.
struct MemoryRow {
  std::uint64_t limit_bytes = 0;
  std::optional<MemoryChoice> choice;  ///< nothing where the limit cannot be met
  std::uint64_t least_bytes = 0;       ///< that would do, then
};

/// A limit of memory that no device reaches.
inline constexpr std::uint64_t kEndlessMemory = std::uint64_t{1} << 62;

/// Counts the bytes that the device has taken and nothing is in, once it has given back what it can: they
/// count against a limit.
std::uint64_t bytes_of_nothing(Device device);

/// Keeps of each layer its input alone, as Checkpointing::layer does.
void checkpoint_all_layers(CausalLM& model);

/// Chooses for `model` (CausalLM::set_checkpointing) by planning the evaluations of a step: the predicted
/// peak is that of the planner.
///
/// Automatic: each layer has the answers of convex_answers() to choose from. What they take is read from one
/// plan of the step for each answer that all layers have; the cheapest combination is that of
/// cheapest_options(), proved by a plan of its own; and where that leaves room, more is kept of the last
/// layers. Throws MemoryLimitTooLow that says the least that would do where the limit is below it, of the
/// other kinds as well; nothing is changed then.
MemoryChoice choose_checkpointing(CausalLM& model, std::span<const StepGraph> step, Checkpointing how,
                                  const MemoryBounds& bounds);

/// Says what automatic would choose without a limit, the first row (limit_bytes 0), for the limits that are
/// these shares of what that needs, and, if it is not 0, for `own_limit` bytes. What answers take is read
/// once for all of them. The model is as before.
std::vector<MemoryRow> compare_limits(CausalLM& model, std::span<const StepGraph> step,
                                      const MemoryBounds& bounds, std::span<const double> shares,
                                      std::uint64_t own_limit);

}  // namespace caldera
