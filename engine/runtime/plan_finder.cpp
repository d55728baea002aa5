#include "engine/runtime/plan_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/compile/compile.h"
#include "engine/explain/debug_print.h"
#include "engine/plan/verify.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/profiler.h"
#include "engine/runtime/settings.h"
#include "engine/tensor/error.h"

namespace caldera {
namespace {

void check_types(const Program& program, const Backend& backend) {
  for (const Program::Node& node : program.nodes) {
    if (node.op->kind == OpClass::placeholder) {
      throw ValueError(
          fmt::format("eval: the value depends on an argument (shape {}) of a function under vmap, which is "
                      "called once for all examples and has no values to compute with; evaluate outside of "
                      "the mapped function, and use where() instead of control flow on values",
                      node.shape.to_string()));
    }
    // Seeds are i64 everywhere: the random kernels read them as two words.
    if (node.op->kind == OpClass::scalar || backend.supports(node.dtype)) continue;
    throw DTypeError(
        fmt::format("{}: {} does not compute with {} (shape {}); convert with astype() or use another device",
                    node.op->name, program.device.to_string(), name(node.dtype), node.shape.to_string()));
  }
}

CompileOptions compile_options() {
  CompileOptions options{.fusion = settings().fusion};
  const std::string& wanted = settings().debug_pass;
  if (!wanted.empty()) {
    options.after_pass = [&wanted](std::string_view pass, const std::function<std::string()>& text) {
      if (wanted == "all" || wanted == pass) fmt::print(stderr, "caldera: after {}:\n{}", pass, text());
    };
  }
  return options;
}

}  // namespace

std::shared_ptr<const Plan> make_plan(const Program& program, const Backend& backend) {
  const ProfileSpan span("compile");
  check_types(program, backend);
  auto plan = compile(program, compile_options());
  if (settings().verify) verify_plan(*plan);
  print_plan(*plan, settings().debug, backend.code_writer());
  return plan;
}

std::shared_ptr<Executable> PlanFinder::find(const GraphKey& c, const std::shared_ptr<OpenDevice>& target) {
  Hash128 key = plan_key(c.hash, target->opening);
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
    constexpr std::uint64_t kOptional = 0x6f7074696f6e616cULL;  // apart from what plan_key mixes
    key.mix(kOptional);
    for (const StoredValue& value : stored) key.mix(value.node);
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
  Backend& backend = *wanted.target->backend;
  const auto make_one = [&] {
    auto plan = make_plan(wanted.program, backend);
    const ProfileSpan span("prepare");
    return std::shared_ptr<Executable>(backend.prepare(std::move(plan)));
  };
  known_.emplace_back(wanted.key,
                      settings().plan_cache ? plan_cache().make_once(wanted.key, make_one) : make_one());
}

}  // namespace caldera
