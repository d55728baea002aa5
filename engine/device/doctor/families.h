// The families of checks, and all of them in a row.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/device/doctor/examination.h"

namespace caldera::doctor {

// One file a family.
void check_elementwise(Examination& x);
void check_casts(Examination& x);
void check_special_values(Examination& x);
void check_random(Examination& x);
void check_reductions(Examination& x);
void check_rows(Examination& x);
void check_products(Examination& x);
void check_indexed(Examination& x);
void check_attention(Examination& x);
void check_replay(Examination& x);
void check_transfers(Examination& x);
void check_memory(Examination& x);

struct Family {
  std::string name;
  std::function<void(Examination&)> run;
};
/// Those of a device: behind "products", which takes what the device takes, there is "products: <name>" for
/// each of its ways to compute them.
std::vector<Family> families(const Backend& backend);

struct Options {
  /// Families whose name contains it; empty: all.
  std::string filter;
  /// Called after each family.
  std::function<void(const Family& family, const Report& so_far)> progress;
  OpenWith open_with;
};

/// Examines a device: takes a minute or two where kernels have to be compiled for a processor. Nothing else
/// may use the backend meanwhile. Throws nothing for what the device does wrong.
Report examine(Backend& backend, const Options& options = {});

}  // namespace caldera::doctor
