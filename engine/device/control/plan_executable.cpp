#include "engine/device/control/plan_executable.h"

#include <numeric>
#include <utility>

#include "engine/device/control/script.h"
#include "engine/plan/inner_plan.h"

namespace caldera {
namespace {

class ScriptExecutable final : public Executable {
 public:
  ScriptExecutable(Backend& backend, std::shared_ptr<const Plan> plan)
      : Executable(plan), script_(backend, std::move(plan)) {}

  std::size_t bytes() const override { return script_.bytes(); }

  Ticket run(Backend& backend, const Bindings& bindings) const {
    const Plan& p = plan();
    std::vector<StoragePtr> arena;
    for (const ArenaSegment& segment : p.arena_segments())
      arena.push_back(backend.allocate(static_cast<std::size_t>(segment.end - segment.begin)));
    const std::vector<ArenaSegment> segments = p.arena_segments();
    ScriptRun run(script_, bindings.is_cancelled);
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
      if (b < bindings.slots.size()) {
        run.buffers[b] = bindings.slots[b];
      } else {
        const std::size_t segment = p.arena_segment_at(p.buffers[b].arena_offset);
        if (segment < arena.size())
          run.buffers[b] = {arena[segment].get(), p.buffers[b].arena_offset - segments[segment].begin};
      }
    }
    run.scalars = bindings.scalars;
    Ticket last = 0;
    try {
      last = run.run();
      backend.wait(last);  // the arena goes
    } catch (const FailedSteps& failed) {
      // Which of the plan's own steps depend on it is not told apart.
      std::vector<std::size_t> all(p.steps.size());
      std::iota(all.begin(), all.end(), std::size_t{0});
      throw FailedSteps{failed.error, std::move(all)};
    } catch (...) {
      backend.trim();  // waits for what has been queued, which has the arena
      throw;
    }
    return last;
  }

 private:
  Script script_;
};

}  // namespace

std::unique_ptr<Executable> prepare_plan(Backend& backend, std::shared_ptr<const Plan> plan) {
  if (!has_control(*plan)) return backend.prepare(std::move(plan));
  return std::make_unique<ScriptExecutable>(backend, std::move(plan));
}

Ticket submit_plan(Backend& backend, Executable& executable, const Bindings& bindings) {
  if (!executable.runs_plans()) return backend.submit(executable, bindings);
  return static_cast<ScriptExecutable&>(executable).run(backend, bindings);
}

}  // namespace caldera
