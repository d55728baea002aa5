#include "engine/device/vulkan/steps/encoder.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/tensor/error.h"

namespace caldera::vulkan {

std::uint32_t Encoder::groups(std::int64_t work, std::int64_t per_group) const {
  const std::int64_t wanted = (work + per_group - 1) / per_group;
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(wanted, context.device->capabilities().max_groups));
}

void Encoder::dispatch(const Step& step, VkPipeline pipeline, std::uint32_t block, std::uint32_t groups,
                       std::int64_t iterations, std::uint32_t instances) {
  const std::uint32_t limit = context.device->capabilities().loop_limit;
  if (limit > 0 && iterations > limit)
    throw DeviceError(fmt::format(
        "{} over {} needs {} loop iterations an invocation; the driver of {} stops at {}", step.name(),
        step.dims.to_string(), iterations, context.device->physical().info.name, limit));
  recording.dispatches.push_back({pipeline, groups, instances, block, barrier_next});
  if (barrier_next) ++recording.barriers;
  barrier_next = false;
}

Recording encode(const Plan& plan, Context& context) {
  Recording recording;
  Encoder encoder{plan, context, recording, TableWriter(plan, recording)};
  std::size_t next = 0;
  for (std::size_t i = 0; i < plan.steps.size(); i = next) {
    const Step& step = plan.steps[i];
    encoder.step = i;
    for (next = i + 1; next < plan.steps.size() && plan.steps[next].joined;) ++next;
    const std::span<const Step> joined = std::span(plan.steps).subspan(i, next - i);
    // The barrier of a step without work is left to the next one: it still orders its neighbours.
    encoder.barrier_next |= step.barrier_before;
    const auto where = [&] {
      return fmt::format("{}: step {} ({}): ", context.device->name(), i, step.name());
    };
    const std::size_t first = recording.dispatches.size();
    try {
      switch (step.kind) {
        case StepKind::region:
          encode_region(encoder, joined);
          break;
        case StepKind::contract:
          encode_contract(encoder, step);
          break;
        case StepKind::gather:
          encode_gather(encoder, step);
          break;
        case StepKind::scatter_add:
          encode_scatter_add(encoder, step);
          break;
        case StepKind::linalg:
          throw DeviceError("LAPACK runs on the CPU; move the matrices there with to()");
        case StepKind::attention:
        case StepKind::attention_grad_q:
        case StepKind::attention_grad_kv:
          encode_attention(encoder, step);
          break;
      }
    } catch (const DTypeError& e) {
      throw DTypeError(where() + e.what());
    } catch (const ShapeError& e) {
      throw ShapeError(where() + e.what());
    } catch (const DeviceError& e) {
      throw DeviceError(where() + e.what());
    } catch (const Error& e) {
      throw Error(where() + e.what());
    }
    recording.steps.insert(
        recording.steps.end(), joined.size(),
        {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(recording.dispatches.size() - first)});
  }
  return recording;
}

}  // namespace caldera::vulkan
