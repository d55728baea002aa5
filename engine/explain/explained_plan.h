// The questions that the writers of an explanation's formats ask of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/device/generated_code.h"
#include "engine/plan/cost.h"
#include "engine/plan/plan.h"

namespace caldera {

/// Returns the code that is generated for a step: its kernels' IR, and what the device makes of them, if
/// `code` is given.
std::vector<GeneratedCode> generated_code(const Step& step, CodeWriter code);

/// Returns the costs of the plan's steps.
std::vector<StepCost> costs_of(const Plan& plan);

/// Lists for each step the earlier steps that wrote what it reads, each once, ascending.
std::vector<std::vector<std::uint32_t>> step_dependencies(const Plan& plan);

/// A buffer of the arena from the step that first touches it to the last one.
struct BufferLife {
  std::size_t buffer = 0;
  std::size_t first = 0;
  std::size_t last = 0;
  std::optional<std::size_t> writer;  // the first step that writes it
  Shape shape;                        // as that step sees it
};
std::vector<BufferLife> arena_lives(const Plan& plan);

/// Counts the bytes of the arena that are in use during each step; memory reused in place counts once.
std::vector<std::int64_t> live_bytes(const Plan& plan, std::span<const BufferLife> lives);

}  // namespace caldera
