// The families of checks, and all of them in a row.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/check/doctor/examination.h"
#include "engine/device/backend.h"

namespace caldera::doctor {

/// A named part of an examination.
struct Family {
  std::string name;
  std::function<void(Examination&)> run;
};
/// Lists the families of a device: behind "products", which takes what the device takes, there is "products:
/// <name>" for each variant that it has of them.
std::vector<Family> families(const Backend& backend);

/// Says what to examine.
struct Options {
  /// Families whose name contains it; empty: all.
  std::string filter;
  Progress progress;
  OpenWith open_with;
};

/// Examines a device: takes a minute or two where kernels have to be compiled for a processor. Nothing else
/// may use the backend meanwhile. Throws nothing for what the device does wrong.
Report examine(Backend& backend, const Options& options = {});

}  // namespace caldera::doctor
