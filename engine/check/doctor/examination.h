// Examination: checks of one device against the f64 reference, as `caldera doctor` runs them.
//
// A family (see families.h) is a function that hands plans to an Examination. The Examination runs them on
// the device, compares, and keeps what came of it; an exception is a failed check, never the end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/check/doctor/report.h"
#include "engine/check/reference/plan_case.h"
#include "engine/device/backend.h"

namespace caldera::doctor {

using reference::Allowed;
using reference::PlanCase;
using reference::Tolerance;

/// A second backend of the same device with an environment switch set while it is opened
/// (CALDERA_VULKAN_WIDE=1, for one).
using OpenWith = std::function<std::unique_ptr<Backend>(const char* variable, const char* value)>;

class Examination {
 public:
  /// `open_with` may be empty: what needs it is then skipped.
  Examination(Backend& backend, OpenWith open_with) : backend_(&backend), open_with_(std::move(open_with)) {}

  Backend& backend() const { return *backend_; }
  Device device() const { return backend_->info().device; }
  bool supports(DType type) const { return backend_->supports(type); }
  /// Returns those of the types given that the device computes with.
  std::vector<DType> supported(std::span<const DType> types) const;
  bool gpu() const { return device().kind == DeviceKind::vulkan; }
  bool has_feature(const char* name) const;
  /// Inside of `on_product_variant`: the same checks have run, or will, without.
  bool on_pinned_variant() const { return pinned_.has_value(); }

  /// One check: every output of the plan under one tolerance.
  void compare(const std::string& name, const PlanCase& plan, const Allowed& allowed);
  struct Named {
    std::string name;
    Allowed allowed;
  };
  /// One run, and a check for each output of the plan.
  void compare_each(const PlanCase& plan, std::span<const Named> outputs);
  /// A check that is no comparison. `body` returns what is wrong, a line each.
  void check(const std::string& name, const char* source,
             const std::function<std::vector<std::string>()>& body);
  void skip(std::string name, std::string reason);

  /// Runs checks on a backend that pins one of the variants of the matrix product (see
  /// Backend::product_variants). Plans none of whose products take it are left out, and their products are
  /// counted as skipped, with the device's reasons. It is a failed check if a product takes another for no
  /// reason, or if none takes it.
  void on_product_variant(const std::string& prefix, const std::string& variant,
                          const std::function<void(Examination&)>& body);

  /// Runs `body` with everything on another backend of the device, names prefixed with `prefix`. Without an
  /// OpenWith `prefix` is skipped with the reason; a backend that cannot be opened is a failed check.
  void on_other_backend(const std::string& prefix, const char* variable, const char* value,
                        const std::function<void(Examination&)>& body);

  const Report& report() const { return report_; }
  Report take_report() { return std::move(report_); }

 private:
  /// Counts what is seen of a pinned variant.
  struct Pinned {
    std::string name;
    std::int64_t products = 0;                   // that went it
    std::map<std::string, std::int64_t> others;  // products that did not, by the reason
  };
  /// Nothing where no step takes the variant that is pinned.
  std::optional<reference::DeviceRun> run(const PlanCase& plan);
  bool takes_pinned_variant(const Executable& executable);
  void add(const std::string& name, const Allowed& allowed, const reference::Comparison& comparison);
  void add_error(const std::string& name, const char* source, const std::string& what);

  Backend* backend_;
  OpenWith open_with_;
  std::optional<Pinned> pinned_;
  Report report_;
};

}  // namespace caldera::doctor
