// Runs the task that `caldera explain` describes until it repeats, and records one run of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/training/training_run.h"
#include "engine/runtime/profiler.h"
#include "lm/adapters/lora.h"
#include "lm/generate/sampling/sampler.h"
#include "training/trainer/memory_curve.h"

namespace caldera::cli {

/// Holds the values of the tasks' flags. A task reads its own; the command refuses the others'.
struct ExplainFlags {
  std::string model;
  /// Makes the model in place of that of the folder, with weights that are not computed yet.
  std::function<std::unique_ptr<CausalLM>(Device)> make_random;
  std::string adapter;
  // forward and decode
  bool prompt_is_text = false;
  std::string prompt;
  std::string prompt_ids;
  std::int64_t prompt_tokens = 64;  // of a prompt that nobody gave
  std::int64_t max_tokens = 100;
  SamplingOptions sampling;
  // train
  TrainingFlags training;
  LoRAOptions lora;
  std::vector<std::string> targets{"q_proj", "v_proj"};
};

/// A run of the task after an earlier one with the same shapes.
struct SteadyRun {
  std::vector<std::shared_ptr<const RunRecord>> runs;  // its evaluations; the largest is what to explain
  std::vector<HostSpan> spans;                         // of the host while it ran
  std::int64_t cache_positions = 0;                    // that a token's cache has room for; 0: of other tasks
  std::vector<MemoryRow> memory;                       // of training under a limit: see memory_curve()
};

/// A prompt through the model: the logits of every position, as `evaluate` computes them.
SteadyRun explain_forward(const ExplainFlags& flags, Device device);
/// A token through the model with the keys and values of those before it, as `generate` does it.
SteadyRun explain_decode(const ExplainFlags& flags, Device device);
/// A step of LoRA training, as `finetune` does it.
SteadyRun explain_train(ExplainFlags& flags, Device device);

}  // namespace caldera::cli
