// Explanation: what a graph has become, for people and tools. A plan, the graph it was made from, what each
// step costs, and, where it has run, how long it took; as a table, JSON, Graphviz source, a picture of its
// memory, a page and a trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/device/generated_code.h"
#include "engine/explain/host_records.h"
#include "engine/explain/recorded_graph.h"

namespace caldera {

struct Plan;
struct RunRecord;

struct Explanation {
  std::string title;
  std::shared_ptr<const Plan> plan;  ///< opaque: what it says is read through the functions below
  RecordedGraph graph;
  bool executed = false;  ///< what follows is known
  bool cache_hit = false;
  std::uint64_t submits = 0;
  double seconds = 0;                ///< from submit until the results are there
  std::vector<double> step_seconds;  ///< of the plan's steps; empty where the device cannot tell
  CodeWriter code = nullptr;         ///< of the device: what it generates for a step
};

/// Explains an evaluation that has been recorded (Profiler) and waited for.
Explanation explain(const RunRecord& run);
/// Explains the largest of several evaluations that make up one piece of work, with the submits of all.
/// Throws ValueError where there is none.
Explanation explain(std::span<const std::shared_ptr<const RunRecord>> runs);

/// Returns a line on the whole, one on its cost, and a table of at most `most_steps` steps: the slowest
/// first, or, where nothing has run, those that move the most bytes.
std::string to_text(const Explanation& explanation, std::size_t most_steps = 24);

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

}  // namespace caldera
