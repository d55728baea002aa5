#include "engine/device/vulkan/steps/encode.h"

#include <fmt/core.h>

#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/vulkan/steps/attention_step.h"
#include "engine/device/vulkan/steps/contract_step.h"
#include "engine/device/vulkan/steps/encoder.h"
#include "engine/device/vulkan/steps/indexed_step.h"
#include "engine/device/vulkan/steps/product_timing.h"
#include "engine/device/vulkan/steps/quantized_step.h"
#include "engine/device/vulkan/steps/region_step.h"

namespace caldera::vulkan {
namespace {

/// Encodes a step and those that are joined to it, one function a kind.
struct EncodeStep {
  Encoder& encoder;
  std::span<const Step> joined;  // the step is the first

  void operator()(const RegionStep& region) const { encode_region(encoder, *region.kernel, joined); }
  void operator()(const ContractStep&) const { encode_contract(encoder, joined); }
  void operator()(const GatherStep& gather) const { encode_gather(encoder, joined[0], gather); }
  void operator()(const ScatterStep& scatter) const { encode_scatter(encoder, joined[0], scatter); }
  void operator()(const AttentionStep& attention) const { encode_attention(encoder, joined[0], attention); }
  void operator()(const QuantizedStep& quantized) const { encode_quantized(encoder, joined[0], quantized); }
  void operator()(const ControlStep&) const {
    throw DeviceError("a step that runs plans is not a dispatch (engine/device/control)");
  }
  void operator()(const ConvolutionStep&) const {
    throw DeviceError("convolutions as steps run on the CPU; conv() composes them of products elsewhere");
  }
  void operator()(const SortStep&) const {
    throw DeviceError("sorts as steps run on the CPU; sort() composes them of a network elsewhere");
  }
  void operator()(const LinalgStep&) const {
    throw DeviceError("LAPACK runs on the CPU; move the matrices there with to()");
  }
};

/// Calls `work`, whose errors then name the step.
template <class Work>
void named(const Context& context, const Plan& plan, std::size_t step, const Work& work) {
  const auto where = [&] {
    return fmt::format("{}: step {} ({}): ", context.device->name(), step, plan.steps[step].name());
  };
  try {
    work();
  } catch (const DTypeError& e) {
    throw DTypeError(where() + e.what());
  } catch (const ShapeError& e) {
    throw ShapeError(where() + e.what());
  } catch (const DeviceError& e) {
    throw DeviceError(where() + e.what());
  } catch (const Error& e) {
    throw Error(where() + e.what());
  }
}

/// Makes what is missing, all of it side by side.
void make_pipelines(const Plan& plan, Context& context, const Recording& recording) {
  std::vector<PipelinePtr> pipelines;
  std::unordered_set<const Pipeline*> seen;
  for (const Dispatch& dispatch : recording.dispatches) {
    if (seen.insert(dispatch.pipeline.get()).second) pipelines.push_back(dispatch.pipeline);
  }
  context.pipelines.make(pipelines);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const DispatchRange range = recording.steps[i];
    if (range.count == 0) continue;
    named(context, plan, i, [&] { recording.dispatches[range.own_dispatch()].pipeline->handle(); });
  }
}

/// Notes a dispatch of copies from slot to slot, from the memory of an input to that of an output.
void note_copies(const Plan& plan, std::span<const Step> joined, Recording& recording, std::size_t first) {
  if (recording.dispatches.size() != first + 1) return;
  CopyDispatch copy{.dispatch = static_cast<std::uint32_t>(first), .slots = {}};
  for (const Step& step : joined) {
    const auto bound = plan.input_count + plan.output_count;
    if (!is_copy(step) || step.operands[0].buffer >= bound || step.operands[1].buffer >= bound) return;
    copy.slots.emplace_back(step.operands[0].buffer, step.operands[1].buffer);
  }
  recording.copies.push_back(std::move(copy));
}

}  // namespace

Recording encode_steps(const Plan& plan, Context& context, const FailedStep& failed) {
  Recording recording;
  Encoder encoder{plan, context, recording, TableWriter(plan, recording)};
  encoder.time_product = [&](const Step& step, const ProductVariant& variant, double stop_at) {
    return time_product(context, plan, step, variant, stop_at);
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < plan.steps.size(); i = next) {
    const Step& step = plan.steps[i];
    encoder.step = i;
    for (next = i + 1; next < plan.steps.size() && plan.steps[next].joined;) ++next;
    const std::span<const Step> joined = std::span(plan.steps).subspan(i, next - i);
    std::size_t end = next;
    if (next < plan.steps.size() && plan.steps[next].finishes) {
      for (end = next + 1; end < plan.steps.size() && plan.steps[end].joined;) ++end;
    }
    encoder.finishing = std::span(plan.steps).subspan(next, end - next);
    // The barrier of a step without work is left to the next one: it still orders its neighbours.
    encoder.barrier_next |= step.barrier_before;
    const std::size_t first = recording.dispatches.size();
    encoder.dispatch_of.assign(joined.size(), first);
    try {
      named(context, plan, i, [&] { step.visit(EncodeStep{encoder, joined}); });
    } catch (const Error& error) {
      if (!failed) throw;
      recording.dispatches.resize(first);
      failed(i, error);
    }
    note_copies(plan, joined, recording, first);
    if (encoder.finishing.empty()) next = end;
    encoder.dispatch_of.resize(next - i, first);  // what finishes a group finishes its only dispatch
    for (const std::size_t own : encoder.dispatch_of) {
      recording.steps.push_back({.first = static_cast<std::uint32_t>(first),
                                 .count = static_cast<std::uint32_t>(recording.dispatches.size() - first),
                                 .own = static_cast<std::uint32_t>(own - first)});
    }
  }
  return recording;
}

Recording encode(const Plan& plan, Context& context) {
  Recording recording = encode_steps(plan, context);
  make_pipelines(plan, context, recording);
  return recording;
}

}  // namespace caldera::vulkan
