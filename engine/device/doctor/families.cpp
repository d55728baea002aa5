#include "engine/device/doctor/families.h"

#include <exception>
#include <string_view>

namespace caldera::doctor {
namespace {

constexpr Family kFamilies[] = {
    {"transfers", check_transfers},
    {"elementwise", check_elementwise},
    {"casts", check_casts},
    {"special values", check_special_values},
    {"random numbers", check_random},
    {"reductions", check_reductions},
    {"rows", check_rows},
    {"products", check_products},
    {"gather and scatter", check_indexed},
    {"attention", check_attention},
    {"replay", check_replay},
    {"memory", check_memory},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

Report examine(Backend& backend, const Options& options) {
  Examination x(backend, options.open_with);
  for (const Family& family : kFamilies) {
    if (std::string_view(family.name).find(options.filter) == std::string_view::npos) continue;
    try {
      family.run(x);
    } catch (const std::exception& error) {
      const std::string what = error.what();
      x.check(std::string(family.name) + ": the rest of its checks", "",
              [&] { return std::vector<std::string>{what}; });
    }
    if (options.progress) options.progress(family, x.report());
  }
  return x.take_report();
}

}  // namespace caldera::doctor
