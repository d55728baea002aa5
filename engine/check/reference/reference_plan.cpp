#include "engine/check/reference/reference_plan.h"

#include "engine/check/reference/reference_steps.h"

namespace caldera::reference {
namespace {

struct RunStep {
  const StepMemory& memory;

  void operator()(const RegionStep& region) const { run_region(memory, region); }
  void operator()(const ContractStep& contract) const { run_contract(memory, contract); }
  void operator()(const GatherStep& gather) const { run_gather(memory, gather); }
  void operator()(const ScatterStep& scatter) const { run_scatter(memory, scatter); }
  void operator()(const AttentionStep& attention) const { run_attention(memory, attention); }
  void operator()(const LinalgStep& linalg) const { run_linalg(memory, linalg); }
  void operator()(const QuantizedStep& quantized) const { run_quantized(memory, quantized); }
};

}  // namespace

void run_reference(const Plan& plan, PlanMemory& memory) {
  for (const Step& step : plan.steps) step.visit(RunStep{StepMemory(plan, memory, step)});
}

}  // namespace caldera::reference
