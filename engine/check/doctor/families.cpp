#include "engine/check/doctor/families.h"

#include <exception>

#include "engine/check/doctor/checks.h"
#include "engine/device/backend.h"

namespace caldera::doctor {
namespace {

Family products_by(const ProductVariantInfo& variant) {
  const std::string name = "products: " + variant.name;
  return {name, [=](Examination& x) {
            if (!variant.why_not.empty()) return x.skip(name, variant.why_not);
            x.on_product_variant(name, variant.name, check_products);
          }};
}

Family attention_by(const AttentionVariantInfo& variant) {
  const std::string name = "attention: " + variant.name;
  return {name, [=](Examination& x) {
            if (!variant.why_not.empty()) return x.skip(name, variant.why_not);
            x.on_other_backend(
                name, "CALDERA_VULKAN_ATTENTION", variant.name.c_str(),
                [&](Examination& other) { check_attention_variant(other, variant.rounds_weights); });
          }};
}

}  // namespace

std::vector<Family> families(const Backend& backend) {
  std::vector<Family> all{
      {"transfers", check_transfers},
      {"elementwise", check_elementwise},
      {"casts", check_casts},
      {"special values", check_special_values},
      {"random numbers", check_random},
      {"reductions", check_reductions},
      {"rows", check_rows},
      {"products", check_products},
  };
  for (const ProductVariantInfo& variant : backend.product_variants()) all.push_back(products_by(variant));
  all.insert(all.end(), {{"gather and scatter", check_indexed},
                         {"quantised weights", check_quantized},
                         {"attention", check_attention}});
  for (const AttentionVariantInfo& variant : backend.attention_variants())
    all.push_back(attention_by(variant));
  all.insert(all.end(), {{"replay", check_replay}, {"memory", check_memory}});
  // The CPU has one address space, no watchdog and no tuner.
  if (backend.info().device.kind == DeviceKind::vulkan) all.push_back({"large", check_large});
  return all;
}

Report examine(Backend& backend, const Options& options) {
  Examination x(backend, options.open_with);
  for (const Family& family : families(backend)) {
    if (family.name.find(options.filter) == std::string::npos) continue;
    try {
      family.run(x);
    } catch (const std::exception& error) {
      const std::string what = error.what();
      x.check(family.name + ": the rest of its checks", "", [&] { return std::vector<std::string>{what}; });
    }
    if (options.progress) options.progress(family.name, x.report());
  }
  return x.take_report();
}

}  // namespace caldera::doctor
