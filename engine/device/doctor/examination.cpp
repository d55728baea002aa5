#include "engine/device/doctor/examination.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

namespace caldera::doctor {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

/// Error in units of the tolerance, for the order of checks.
double badness(const Check& check) {
  if (!check.good()) return std::numeric_limits<double>::infinity();
  return check.tolerance > 0 ? check.error / check.tolerance : 0;
}

}  // namespace

std::int64_t Report::failed() const {
  return std::count_if(checks.begin(), checks.end(), [](const Check& c) { return !c.good(); });
}

std::vector<const Check*> Report::worst(std::size_t count) const {
  std::vector<const Check*> order;
  order.reserve(checks.size());
  for (const Check& check : checks) order.push_back(&check);
  std::stable_sort(order.begin(), order.end(),
                   [](const Check* a, const Check* b) { return badness(*a) > badness(*b); });
  order.resize(std::min(order.size(), count));
  return order;
}

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

void Examination::compare(const std::string& name, const PlanCase& plan, const Allowed& allowed) {
  try {
    add(name, allowed, plan.compare(plan.run_on(*backend_), allowed.tolerance));
  } catch (const std::exception& error) {
    add_error(name, allowed.source, error.what());
  }
}

void Examination::compare_each(const PlanCase& plan, std::span<const Named> outputs) {
  std::size_t done = 0;
  try {
    const reference::DeviceRun run = plan.run_on(*backend_);
    const reference::PlanMemory expected = plan.expected();
    for (; done < outputs.size(); ++done) {
      reference::Comparison result =
          plan.compare_output(run, expected, done, outputs[done].allowed.tolerance);
      result.complaints.insert(result.complaints.begin(), run.damage.begin(), run.damage.end());
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

void Examination::on_other_backend(const std::string& prefix, const char* variable, const char* value,
                                   const std::function<void(Examination&)>& body) {
  if (!open_with_) return skip(prefix, "no second backend of the device was offered");
  std::unique_ptr<Backend> backend;
  try {
    backend = open_with_(variable, value);
  } catch (const std::exception& error) {
    return skip(prefix, std::string("the device cannot be opened a second time: ") + error.what());
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
