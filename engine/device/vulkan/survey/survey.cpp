#include "engine/device/vulkan/survey/survey.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "engine/device/vulkan/steps/encode.h"
#include "engine/device/vulkan/survey/executable_statistics.h"

namespace caldera::vulkan {
namespace {

std::string family_of(const Step& step) {
  if (step.is<ContractStep>()) return "product";
  if (!step.is<RegionStep>()) return std::string(step.kind());
  const std::string_view form = step.form();
  if (form == "map") return "elementwise";
  return form == "reduce" ? "reduction" : std::string(form);
}

/// The reports of a survey while it goes on.
class Reports {
 public:
  explicit Reports(Context& context) : context_(context) {}

  void add(const Plan& plan) {
    const Recording recording = encode_steps(plan, context_, [&](std::size_t step, const Error& error) {
      KernelReport failed = named(plan.steps[step]);
      failed.error = error.what();
      all_.push_back(std::move(failed));
      pipelines_.emplace_back();
    });
    const std::vector<Work> work = work_of(plan, recording);
    std::vector<bool> seen(recording.dispatches.size());
    std::size_t chosen = 0;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      std::string_view variant;
      while (chosen < recording.variants.size() && recording.variants[chosen].step < s) ++chosen;
      if (chosen < recording.variants.size() && recording.variants[chosen].step == s)
        variant = recording.variants[chosen].variant.name;
      const DispatchRange range = recording.steps[s];
      if (range.count == 0 || seen[range.own_dispatch()]) continue;
      seen[range.own_dispatch()] = true;
      add(plan.steps[s], variant, recording.dispatches[range.own_dispatch()], work[range.own_dispatch()]);
    }
  }

  std::vector<KernelReport> finish() {
    std::vector<PipelinePtr> to_make;
    for (const PipelinePtr& pipeline : pipelines_)
      if (pipeline != nullptr) to_make.push_back(pipeline);
    context_.pipelines.make(to_make);
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (pipelines_[i] != nullptr) look(all_[i], *pipelines_[i]);
    return std::move(all_);
  }

 private:
  static KernelReport named(const Step& step) {
    KernelReport report;
    report.kernel = step.name();
    report.family = family_of(step);
    report.dims = step.dims.to_string();
    return report;
  }

  void add(const Step& step, std::string_view variant, const Dispatch& dispatch, const Work& work) {
    const auto [found, is_new] = at_.try_emplace(dispatch.pipeline.get(), all_.size());
    if (is_new) {
      all_.push_back(named(step));
      all_.back().variant = variant;
      pipelines_.push_back(dispatch.pipeline);
      most_.resize(all_.size());
    }
    KernelReport& report = all_[found->second];
    if (work.bytes > most_[found->second]) {
      most_[found->second] = work.bytes;
      report.dims = step.dims.to_string();
    }
    report.dispatches.push_back({.workgroups = std::int64_t{dispatch.groups} * dispatch.instances,
                                 .bytes = work.bytes,
                                 .flops = work.flops,
                                 .iterations = dispatch.iterations,
                                 .rounds = dispatch.rounds,
                                 .turns = dispatch.turns,
                                 .barrier_before = dispatch.barrier_before});
  }

  void look(KernelReport& report, Pipeline& pipeline) {
    try {
      const VkPipeline handle = pipeline.handle();
      const spirv::ModuleFacts facts = context_.pipelines.facts(handle);
      report.uses_matrices = facts.uses_matrices;
      report.workgroup_size = facts.workgroup_size;
      ExecutableFacts made = read_executable(*context_.device, handle);
      report.statistics = sort_statistics(made.statistics);
      if (!report.statistics.shared_bytes)
        report.statistics.shared_bytes = static_cast<double>(facts.shared_bytes);
      report.code = made.code;
      report.subgroup_size =
          made.subgroup_size > 0 ? made.subgroup_size : context_.device->capabilities().subgroup_size;
    } catch (const Error& error) {
      report.error = error.what();
    }
    context_.device->check_alive();
  }

  Context& context_;
  std::vector<KernelReport> all_;
  std::vector<PipelinePtr> pipelines_;  // one a report; null: it has none
  std::vector<std::int64_t> most_;      // bytes of the largest dispatch, one a report
  std::unordered_map<const Pipeline*, std::size_t> at_;
};

}  // namespace

std::vector<KernelReport> survey(std::span<const std::shared_ptr<const Plan>> plans, Context& context) {
  Reports reports(context);
  for (const auto& plan : plans) reports.add(*plan);
  return reports.finish();
}

}  // namespace caldera::vulkan
