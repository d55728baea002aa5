#include "engine/runtime/plan_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/compile/compile.h"
#include "engine/device/control/plan_executable.h"
#include "engine/explain/debug_print.h"
#include "engine/graph/tracing/tracing.h"
#include "engine/plan/verify.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/profile_hooks.h"
#include "engine/runtime/settings.h"

namespace caldera {
namespace {

void check_types(const Program& program, const Backend& backend) {
  for (const Program::Node& node : program.nodes) {
    if (node.op->kind == OpClass::placeholder) {
      throw ValueError(no_value_of_argument(*node.op, node.shape));
    }
    // Seeds are i64 everywhere: the random kernels read them as two words.
    if (node.op->kind == OpClass::scalar || backend.supports(node.dtype)) continue;
    throw DTypeError(
        fmt::format("{}: {} does not compute with {} (shape {}); convert with astype() or use another device",
                    node.op->name, program.device.to_string(), name(node.dtype), node.shape.to_string()));
  }
}

CompileOptions compile_options(const DeviceTraits& traits) {
  CompileOptions options{
      .fusion = settings().fusion, .arena_segment = settings().arena_segment, .traits = traits};
  const std::string& wanted = settings().debug_pass;
  if (!wanted.empty()) {
    options.after_pass = [&wanted](std::string_view pass, const std::function<std::string()>& text) {
      if (wanted == "all" || wanted == pass) fmt::print(stderr, "caldera: after {}:\n{}", pass, text());
    };
  }
  return options;
}

/// The key of a plan of the graph with these optional outputs, where that of `key` has others.
Hash128 key_with_optional(Hash128 key, std::span<const StoredValue> stored) {
  constexpr std::uint64_t kOptional = 0x6f7074696f6e616cULL;  // apart from what plan_key mixes
  key.mix(kOptional);
  for (const StoredValue& value : stored) key.mix(value.node);
  return key;
}

std::shared_ptr<Executable> make_executable(const Hash128& key, const Program& program,
                                            const OpenDevice& target) {
  Backend& backend = *target.backend;
  const auto make = [&] {
    auto plan = make_plan(program, backend);
    const ProfileSpan span("prepare");
    return std::shared_ptr<Executable>(prepare_plan(backend, std::move(plan)));
  };
  return settings().plan_cache ? plan_cache().make_once(key, make) : make();
}

}  // namespace

std::shared_ptr<const Plan> make_plan(const Program& program, const Backend& backend) {
  const ProfileSpan span("compile");
  check_types(program, backend);
  auto plan = compile(program, compile_options(backend.traits()));
  if (settings().verify) verify_plan(*plan);
  print_plan(*plan, settings().debug, backend.code_writer());
  return plan;
}

std::shared_ptr<Executable> PlanFinder::find(const GraphKey& c, const std::shared_ptr<OpenDevice>& target) {
  Hash128 key = plan_key(c.hash, target->backend->traits(), target->opening);
  const auto cached = [&](PlanCache::Lookup lookup) {
    return settings().plan_cache ? plan_cache().find(key, lookup) : nullptr;
  };
  std::shared_ptr<Executable> found = known(key);
  PlanCache::Lookup next = PlanCache::Lookup::first;
  if (found == nullptr && (found = cached(next)) != nullptr) next = PlanCache::Lookup::further;
  if (found != nullptr) {
    // A plan of the graph, with the optional outputs that were wanted when it was made. All plans of it store
    // the same values.
    const Plan& plan = found->plan();
    if (c.wanted.empty() && plan.optional_outputs.empty()) return found;
    const std::vector<StoredValue> stored = plan.stored_among(c.wanted);
    const auto is_node = [](const StoredValue& value, std::uint32_t node) { return value.node == node; };
    if (std::equal(stored.begin(), stored.end(), plan.optional_outputs.begin(), plan.optional_outputs.end(),
                   is_node))
      return found;
    if (next == PlanCache::Lookup::further) known_.emplace_back(key, found);
    key = key_with_optional(key, stored);
    found = known(key);
    if (found == nullptr) found = cached(next);
    if (found != nullptr) return found;
  }
  wanted_ = Wanted{.key = key, .program = c.program(), .nodes = c.owned_nodes(), .target = target};
  wanted_->program.optional_outputs = c.wanted;
  return nullptr;
}

std::shared_ptr<Executable> PlanFinder::known(const Hash128& key) const {
  for (const auto& [its, executable] : known_) {
    if (its == key) return executable;
  }
  return nullptr;
}

void PlanFinder::make() {
  const Wanted wanted = std::move(*wanted_);
  wanted_.reset();
  known_.emplace_back(wanted.key, make_executable(wanted.key, wanted.program, *wanted.target));
}

std::shared_ptr<Executable> find_executable(const Hash128& structure, const Program& program,
                                            const OpenDevice& target) {
  Hash128 key = plan_key(structure, target.backend->traits(), target.opening);
  if (settings().plan_cache) {
    auto found = plan_cache().find(key);
    if (found != nullptr && !found->plan().optional_outputs.empty()) {
      key = key_with_optional(key, {});
      found = plan_cache().find(key, PlanCache::Lookup::further);
    }
    if (found != nullptr) return found;
  }
  return make_executable(key, program, target);
}

}  // namespace caldera
