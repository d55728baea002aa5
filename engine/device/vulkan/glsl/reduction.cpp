#include "engine/device/vulkan/glsl/reduction.h"

#include <algorithm>

namespace caldera {
namespace {

bool in_subgroups(DType type, const GlslOptions& options) {
  return options.subgroup_size > 0 && (type == DType::f32 || type == DType::i32 || type == DType::u8);
}

std::string_view subgroup_function(Combine combine) {
  switch (combine) {
    case Combine::sum:
      return "subgroupAdd";
    case Combine::maximum:
      return "subgroupMax";
    case Combine::minimum:
      return "subgroupMin";
    case Combine::product:
      return "subgroupMul";
  }
  return {};
}

}  // namespace

std::string GlslReductions::counter() const {
  for (const GlslReduction& r : list_) {
    if (r.in_blocks()) return r.name + "_count";
  }
  return {};
}

bool GlslReductions::share(const GlslOptions& options, int lanes) const {
  return std::any_of(list_.begin(), list_.end(), [&](const GlslReduction& r) {
    return !in_subgroups(r.type, options) || !single_subgroup(options, lanes);
  });
}

void GlslReductions::declare() {
  for (const GlslReduction& r : list_) {
    body_.needs.value(r.type);
    body_.line("{} {} = {};", glsl_type(r.type), r.name, glsl_identity(r.combine, r.type, body_.needs.calls));
    if (r.in_blocks()) body_.line("float {}_total = 0.0;", r.name);
    if (r.notes_nan()) body_.line("uint {}_bits = 0u;", r.name);
  }
  if (!counter().empty()) body_.line("uint {} = 0u;", counter());
}

void GlslReductions::add(std::size_t r, const std::string& value) {
  const GlslReduction& reduction = list_[r];
  if (reduction.notes_nan()) {
    body_.line("{0} = {1}({0}, {2});", reduction.name, reduction.combine == Combine::maximum ? "max" : "min",
               value);
    body_.line("{0}_bits = max({0}_bits, floatBitsToUint({1}) & 0x7fffffffu);", reduction.name, value);
    return;
  }
  body_.line("{} = {};", reduction.name,
             glsl_combine(reduction.combine, reduction.type, reduction.name, value, body_.needs.calls));
}

void GlslReductions::end_point(int points) {
  if (counter().empty()) return;
  body_.open("if ((++{} & {}u) == 0u) {{", counter(), 256 / points - 1);
  for (const GlslReduction& r : list_) {
    if (!r.in_blocks()) continue;
    body_.line("{0}_total += {0};", r.name);
    body_.line("{} = 0.0;", r.name);
  }
  body_.close();
}

void GlslReductions::finish() {
  for (const GlslReduction& r : list_) {
    if (r.in_blocks()) body_.line("{0} += {0}_total;", r.name);
    if (r.notes_nan()) {
      body_.needs.calls.insert("constants");
      body_.line("if ({0}_bits > 0x7f800000u) {0} = quiet_nan();", r.name);
    }
  }
}

void GlslReductions::combine_subgroup(const GlslReduction& r) {
  body_.needs.subgroups = true;
  GlslCalls& calls = body_.needs.calls;
  const std::string_view function = subgroup_function(r.combine);
  if (r.type == DType::f32 && (r.combine == Combine::maximum || r.combine == Combine::minimum)) {
    // The subgroup operations may drop NaN.
    calls.insert("is_nan");
    calls.insert("constants");
    body_.line("const uint {0}_nan = subgroupMax(is_nan({0}) ? 1u : 0u);", r.name);
    body_.line("{0} = {1}(is_nan({0}) ? {2} : {0});", r.name, function,
               glsl_identity(r.combine, r.type, calls));
    body_.line("if ({0}_nan != 0u) {0} = quiet_nan();", r.name);
  } else {
    body_.line("{0} = {1}({0}){2};", r.name, function, r.type == DType::u8 ? " & 0xffu" : "");
  }
}

void GlslReductions::combine_lanes(const GlslOptions& options, int lanes, bool everywhere, bool again,
                                   std::string& shared) {
  std::vector<const GlslReduction*> rest;
  for (const GlslReduction& r : list_) {
    const bool subgroups = in_subgroups(r.type, options);
    if (subgroups) combine_subgroup(r);
    if (!subgroups || !single_subgroup(options, lanes)) rest.push_back(&r);
  }
  if (rest.empty()) return;
  const auto one_a_subgroup = [&](const GlslReduction& r) { return in_subgroups(r.type, options); };
  for (const GlslReduction* r : rest) {
    const bool boolean = r->type == DType::boolean;
    shared += fmt::format("shared {} part_{}[{}];\n", boolean ? std::string_view("uint") : glsl_type(r->type),
                          r->name, lanes);
    const std::string value = boolean ? fmt::format("{} ? 1u : 0u", r->name) : r->name;
    if (one_a_subgroup(*r))
      body_.line("if (subgroupElect()) part_{}[gl_SubgroupID] = {};", r->name, value);
    else
      body_.line("part_{}[gl_LocalInvocationID.x] = {};", r->name, value);
  }
  body_.line("barrier();");
  if (!everywhere) body_.open("if (gl_LocalInvocationID.x == 0u) {{");
  for (const GlslReduction* r : rest) {
    const char* unequal = r->type == DType::boolean ? " != 0u" : "";
    body_.line("{0} = part_{0}[0]{1};", r->name, unequal);
    body_.open("for (uint l = 1u; l < {}; ++l) {{",
               one_a_subgroup(*r) ? std::string("gl_NumSubgroups") : fmt::format("{}u", lanes));
    body_.line("const {0} other = part_{1}[l]{2};", glsl_type(r->type), r->name, unequal);
    body_.line("{} = {};", r->name, glsl_combine(r->combine, r->type, r->name, "other", body_.needs.calls));
    body_.close();
  }
  if (!everywhere) body_.close();
  if (again) body_.line("barrier();  // before the parts are overwritten");
}

}  // namespace caldera
