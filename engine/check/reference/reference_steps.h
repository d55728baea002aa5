// One function a kind of step: what it computes, one element at a time, from the contract in
// engine/plan/steps.
#pragma once

#include "engine/check/reference/step_memory.h"

namespace caldera::reference {

void run_step(const StepMemory& memory, const RegionStep& region);
void run_step(const StepMemory& memory, const ContractStep& contract);
void run_step(const StepMemory& memory, const GatherStep& gather);
void run_step(const StepMemory& memory, const ScatterStep& scatter);
void run_step(const StepMemory& memory, const AttentionStep& attention);
/// Throws std::domain_error for a matrix that has no result.
void run_step(const StepMemory& memory, const LinalgStep& linalg);
void run_step(const StepMemory& memory, const QuantizedStep& quantized);
void run_step(const StepMemory& memory, const ConvolutionStep& convolution);
void run_step(const StepMemory& memory, const SortStep& sort);

}  // namespace caldera::reference
