#include "engine/check/doctor/examination.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include "engine/base/error.h"

namespace caldera::doctor {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

}  // namespace

std::vector<DType> Examination::supported(std::span<const DType> types) const {
  std::vector<DType> result;
  for (DType type : types)
    if (supports(type)) result.push_back(type);
  return result;
}

bool Examination::has_feature(const char* name) const {
  const auto& features = backend_->info().features;
  return std::find(features.begin(), features.end(), name) != features.end();
}

void Examination::add(const std::string& name, const Allowed& allowed,
                      const reference::Comparison& comparison) {
  const Tolerance& t = allowed.tolerance;
  Check check;
  check.name = name;
  check.source = allowed.source;
  check.tolerance = t.relative > 0 ? t.relative : t.absolute;
  const double error = check.tolerance > 0 ? comparison.worst * check.tolerance : comparison.difference;
  check.error = std::isfinite(error) ? error : kLargest;
  check.complaints = comparison.complaints;
  report_.checks.push_back(std::move(check));
}

void Examination::add_error(const std::string& name, const char* source, const std::string& what) {
  report_.checks.push_back({name, kLargest, 0, source, {what}});
}

bool Examination::takes_pinned_variant(const Executable& executable) {
  bool goes = false;
  const std::vector<Step>& steps = executable.plan().steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::int64_t* const extents = steps[i].dims.begin();
    const std::int64_t* const depth = steps[i].dims.end() - 1;
    if (!steps[i].is<ContractStep>() || std::find(extents, depth, 0) != depth) continue;
    const StepVariant variant = executable.variant_of(i);
    if (variant.name == pinned_->name) {
      goes = true;
      ++pinned_->products;
    } else if (!variant.why_not.empty()) {
      ++pinned_->others[variant.why_not];
    } else {
      throw Error("step " + std::to_string(i) + " over " + steps[i].dims.to_string() + " was computed by '" +
                  std::string(variant.name) + "' and not by '" + pinned_->name + "', for no reason");
    }
  }
  return goes;
}

std::optional<reference::DeviceRun> Examination::run(const PlanCase& plan) {
  const auto executable = backend_->prepare(plan.shared_plan());
  if (pinned_ && !takes_pinned_variant(*executable)) return std::nullopt;
  return plan.run_on(*backend_, *executable);
}

void Examination::compare(const std::string& name, const PlanCase& plan, const Allowed& allowed) {
  try {
    const std::optional<reference::DeviceRun> ran = run(plan);
    if (ran) add(name, allowed, plan.compare(*ran, allowed.tolerance));
  } catch (const std::exception& error) {
    add_error(name, allowed.source, error.what());
  }
}

void Examination::compare_each(const PlanCase& plan, std::span<const Named> outputs) {
  std::size_t done = 0;
  try {
    const std::optional<reference::DeviceRun> ran = run(plan);
    if (!ran) return;
    const reference::PlanMemory expected = plan.expected();
    for (; done < outputs.size(); ++done) {
      reference::Comparison result =
          plan.compare_output(*ran, expected, done, outputs[done].allowed.tolerance);
      result.complaints.insert(result.complaints.begin(), ran->damage.begin(), ran->damage.end());
      add(outputs[done].name, outputs[done].allowed, result);
    }
  } catch (const std::exception& error) {
    for (; done < outputs.size(); ++done)
      add_error(outputs[done].name, outputs[done].allowed.source, error.what());
  }
}

void Examination::check(const std::string& name, const char* source,
                        const std::function<std::vector<std::string>()>& body) {
  Check check;
  check.name = name;
  check.source = source;
  try {
    check.complaints = body();
  } catch (const std::exception& error) {
    check.complaints = {error.what()};
  }
  check.error = static_cast<double>(check.complaints.size());
  report_.checks.push_back(std::move(check));
}

void Examination::skip(std::string name, std::string reason) {
  report_.skipped.push_back({std::move(name), std::move(reason)});
}

void Examination::on_product_variant(const std::string& prefix, const std::string& variant,
                                     const std::function<void(Examination&)>& body) {
  on_other_backend(prefix, "CALDERA_TUNE", variant.c_str(), [&](Examination& other) {
    other.pinned_ = Pinned{variant, 0, {}};
    body(other);
    std::int64_t products = other.pinned_->products;
    for (const auto& [reason, count] : other.pinned_->others) products += count;
    const std::string of_all = " of " + std::to_string(products) + " products";
    for (const auto& [reason, count] : other.pinned_->others)
      other.skip(std::to_string(count) + of_all, reason);
    other.check("has computed products", "what the device says of its steps", [&] {
      return other.pinned_->products > 0
                 ? std::vector<std::string>{}
                 : std::vector<std::string>{"none of the" + of_all.substr(3) + " was computed by it"};
    });
  });
}

void Examination::on_other_backend(const std::string& prefix, const char* variable, const char* value,
                                   const std::function<void(Examination&)>& body) {
  if (!open_with_) return skip(prefix, "no second backend of the device was offered");
  std::unique_ptr<Backend> backend;
  try {
    backend = open_with_(variable, value);
  } catch (const std::exception& error) {
    return add_error(prefix, "opening the device a second time", error.what());
  }
  if (backend == nullptr) return skip(prefix, "no second backend of the device was offered");
  Examination other(*backend, nullptr);
  body(other);
  for (Check check : other.report_.checks) {
    check.name.insert(0, prefix + ": ");
    report_.checks.push_back(std::move(check));
  }
  for (const Skip& skipped : other.report_.skipped) skip(prefix + ": " + skipped.name, skipped.reason);
}

}  // namespace caldera::doctor
