// Explain: what a graph has become, for people and tools. A plan, the graph it was made from, what each step
// costs, and, where it has run, how long it took; as JSON, Graphviz source, a picture of its memory, a page
// and a trace.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/explain/records.h"
#include "engine/plan/cost.h"
#include "engine/plan/plan.h"

namespace caldera {

struct Explanation {
  std::string title;
  std::shared_ptr<const Plan> plan;
  RecordedGraph graph;
  std::vector<StepCost> costs;  // of the plan's steps
  bool executed = false;        // what follows is known
  bool cache_hit = false;
  std::uint64_t submits = 0;
  double seconds = 0;                // from submit until the results are there
  std::vector<double> step_seconds;  // of the plan's steps; empty where the device cannot tell
  CodeWriter code = nullptr;         // of the device: what it generates for a step
};

/// An evaluation that has been recorded and waited for.
Explanation explain(const RunRecord& run);

/// One line:
/// {"title","device","nodes","steps":[{"kernel","kind","ops","flops","bytes","scratch_bytes","form",
/// "label","dims","dtype","read_bytes","written_bytes","joined","barrier","microseconds"}],"dispatches",
/// "barriers","depth","submits","arena_bytes","peak_bytes","recomputed","cache"}; submits and cache are null,
/// and steps have no time, where nothing has run. Depth is that of the dispatches' dependencies: no order of
/// them has fewer barriers than depth - 1.
std::string to_json(const Explanation& explanation);

/// Graphviz source of the graph after fusion: a cluster for each step around the nodes that it computes.
std::string to_dot(const Explanation& explanation);

/// The arena over time: a rectangle for each buffer from its first to its last step, at its offset, below the
/// curve of live bytes. A file of its own, or part of a page; hovering names a buffer.
std::string to_memory_svg(const Explanation& explanation);

/// A page of its own, without any reference to the network: numbers, the graph before and after fusion, the
/// kernels with their code, memory over time.
std::string to_html(const Explanation& explanation);

/// Chrome's trace format (chrome://tracing, ui.perfetto.dev), one JSON object: the host's threads with what
/// they did for the evaluations, copies between devices included; for each device the plans that ran, from
/// submission to results, and within them a slice for each kernel with its cost and rates, where the device
/// can tell; and counters of each device's memory: live and reserved bytes, and how much of the arena is in
/// use.
std::string to_trace(std::span<const std::shared_ptr<const RunRecord>> runs, std::span<const HostSpan> spans,
                     std::span<const CopyRecord> copies = {});

/// The code that is generated for a step: its kernels' IR, and what the device makes of them, if `code` is
/// given.
std::vector<GeneratedCode> generated_code(const Step& step, CodeWriter code);

// ---- For the writers of these formats ----

/// The costs of the plan's steps.
std::vector<StepCost> costs_of(const Plan& plan);

/// "12.5 KiB"
std::string format_bytes(std::int64_t bytes);

/// Lists for each step the earlier steps that wrote what it reads, each once, ascending.
std::vector<std::vector<std::uint32_t>> step_dependencies(const Plan& plan);

/// A buffer of the arena from the step that first touches it to the last one.
struct BufferLife {
  std::size_t buffer = 0;
  std::size_t first = 0;
  std::size_t last = 0;
  std::optional<std::size_t> writer;  // the first step that writes it
  Shape shape;                        // as that step sees it
};
std::vector<BufferLife> arena_lives(const Plan& plan);

/// Bytes of the arena that are in use during each step; memory reused in place counts once.
std::vector<std::int64_t> live_bytes(const Plan& plan, std::span<const BufferLife> lives);

}  // namespace caldera
