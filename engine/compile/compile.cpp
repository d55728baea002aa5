#include "engine/compile/compile.h"

#include <array>
#include <optional>
#include <utility>

#include "engine/compile/emit/emitter.h"
#include "engine/compile/emit/layouts.h"
#include "engine/compile/fuse/fuse_text.h"
#include "engine/compile/fuse/grouping.h"
#include "engine/compile/fuse/placement.h"
#include "engine/compile/lower/lower.h"
#include "engine/compile/order/early_exchanges.h"
#include "engine/compile/order/finish_steps.h"
#include "engine/compile/order/follow_steps.h"
#include "engine/compile/order/in_place.h"
#include "engine/compile/order/join_steps.h"
#include "engine/compile/order/optional_outputs.h"
#include "engine/compile/order/order_and_place.h"
#include "engine/compile/order/schedule.h"
#include "engine/compile/program/program_text.h"
#include "engine/compile/rewrite/attention.h"
#include "engine/compile/rewrite/products.h"
#include "engine/compile/rewrite/simplify.h"
#include "engine/compile/rewrite/turned_products.h"

namespace caldera {
namespace {

/// What the passes work on: each goes on with what those before it have made.
struct Compilation {
  const Program& given;
  const CompileOptions& options;
  bool fusion;
  std::int64_t arena_segment;
  DeviceTraits traits;
  Program program;
  std::optional<Placement> placement;  // refers to `program`, which stays as it is from then on
  std::vector<Group> groups;
  Plan plan;
};

/// The farthest form that there is after a pass.
enum class Form : std::uint8_t { program, placement, groups, plan };

struct Pass {
  std::string_view name;
  Form gives;
  bool fuses;  // left out where nothing is to be fused
  void (*run)(Compilation&);
};

constexpr bool kFuses = true;
constexpr bool kAlways = false;

constexpr std::array<Pass, 16> kPasses{{
    // The same values from fewer and larger nodes.
    {"simplify", Form::program, kAlways, [](Compilation& c) { c.program = simplify(c.given, c.fusion); }},
    {"products", Form::program, kFuses,
     [](Compilation& c) { c.program = sum_products(std::move(c.program)); }},
    {"attention", Form::program, kFuses,
     [](Compilation& c) { c.program = find_attention(std::move(c.program), c.traits); }},
    {"turned_products", Form::program, kFuses,
     [](Compilation& c) { c.program = turn_products(std::move(c.program)); }},

    // Which of them share a kernel, and what each kernel reads and writes.
    {"placement", Form::placement, kAlways, [](Compilation& c) { c.placement.emplace(c.program, c.fusion); }},
    {"grouping", Form::groups, kAlways, [](Compilation& c) { c.groups = group(*c.placement, c.fusion); }},
    {"emit", Form::plan, kAlways,
     [](Compilation& c) {
       c.plan = Emitter(*c.placement, c.traits, [&](const Program& part) {
                  return compile(part, c.options);
                }).run(c.groups);
       c.plan.node_count = static_cast<std::int64_t>(c.given.nodes.size());
       c.plan.arena_segment = c.arena_segment;
     }},

    {"layouts", Form::plan, kFuses, [](Compilation& c) { choose_layouts(c.plan); }},

    // When each step runs, and where its results are.
    {"schedule", Form::plan, kAlways,
     [](Compilation& c) {
       order_exchanges(c.plan);
       schedule(c.plan);
       move_exchanges_up(c.plan);
     }},
    {"join", Form::plan, kFuses, [](Compilation& c) { join_steps(c.plan); }},
    {"follow", Form::plan, kFuses, [](Compilation& c) { follow_steps(c.plan); }},
    {"lower", Form::plan, kFuses, [](Compilation& c) { lower(c.plan, c.traits); }},
    {"optional_outputs", Form::plan, kAlways,
     [](Compilation& c) { add_optional_outputs(c.plan, c.given.optional_outputs); }},
    {"order_and_place", Form::plan, kAlways,
     [](Compilation& c) { order_and_place(c.plan, c.traits.barriers_cost); }},
    {"finish", Form::plan, kFuses, [](Compilation& c) { finish_steps(c.plan); }},
    {"donations", Form::plan, kAlways, [](Compilation& c) { find_donations(c.plan); }},
}};

std::string text_of(const Compilation& c, Form form) {
  switch (form) {
    case Form::program:
      return to_string(c.program);
    case Form::placement:
      return to_string(*c.placement);
    case Form::groups:
      return to_string(*c.placement, c.groups);
    case Form::plan:
      break;
  }
  return c.plan.to_string();
}

}  // namespace

std::shared_ptr<const Plan> compile(const Program& program, const CompileOptions& options) {
  Compilation c{.given = program,
                .options = options,
                .fusion = options.fusion,
                .arena_segment = options.arena_segment,
                .traits = options.traits};
  for (const Pass& pass : kPasses) {
    if (pass.fuses && !options.fusion) continue;
    pass.run(c);
    if (options.after_pass) options.after_pass(pass.name, [&] { return text_of(c, pass.gives); });
  }
  return std::make_shared<Plan>(std::move(c.plan));
}

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  names.reserve(kPasses.size());
  for (const Pass& pass : kPasses) names.push_back(pass.name);
  return names;
}

}  // namespace caldera
