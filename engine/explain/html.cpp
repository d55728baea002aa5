// The page: fixed parts around the data of one explanation.
#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "engine/base/byte_size.h"
#include "engine/explain/explained_plan.h"
#include "engine/explain/explanation.h"
#include "engine/explain/page.h"
#include "engine/graph/op.h"

namespace caldera {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::int64_t> extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

const char* kind_of(const GraphNode& node) {
  if (node.is_data) return "data";
  switch (node.op->kind) {
    case OpClass::data:
      return "data";
    case OpClass::scalar:
      return "scalar";
    case OpClass::reduce:
      return "reduce";
    case OpClass::contract:
    case OpClass::quantized:
    case OpClass::convolution:
      return "contract";
    case OpClass::gather:
    case OpClass::scatter:
    case OpClass::sort:
      return "index";
    case OpClass::linalg:
      return "linalg";
    case OpClass::pad:
    case OpClass::dynamic_update:
    case OpClass::concatenate:
      return "copy";
    case OpClass::reshape:
    case OpClass::permute:
    case OpClass::slice:
    case OpClass::dynamic_slice:
    case OpClass::broadcast:
    case OpClass::identity:
    case OpClass::barrier:
      return "view";
    default:
      return "map";
  }
}

Json graph_data(const RecordedGraph& graph) {
  Json nodes = Json::array();
  for (const GraphNode& node : graph.nodes) {
    nodes.push_back({{"op", node.op->name},
                     {"kind", kind_of(node)},
                     {"shape", extents(node.shape)},
                     {"dtype", name(node.dtype)},
                     {"in", node.inputs}});
  }
  return nodes;
}

/// "in  arena 12  f32 at 512  strides (64, 1)"
std::string describe(const Plan& plan, const Step& step, std::size_t k) {
  const Operand& operand = step.operands[k];
  const bool is_output = k + static_cast<std::size_t>(step.output_count()) >= step.operands.size();
  const Shape strides(operand.strides);
  if (operand.buffer < 0)
    return fmt::format("index          offset {}  strides {}", operand.offset, strides.to_string());
  const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(operand.buffer)];
  const auto number = operand.buffer;
  const std::string where = buffer.role == BufferRole::input ? fmt::format("input {}", number)
                            : buffer.role == BufferRole::output
                                ? fmt::format("output {}", number - plan.input_count)
                                : fmt::format("arena {}", number);
  const std::string moved =
      operand.position >= 0 ? fmt::format("  moved by position {}", operand.position) : "";
  return fmt::format("{}  {:<11}  {:<4} {:>9}  offset {}  strides {}{}", is_output ? "out" : "in ", where,
                     name(buffer.dtype), format_bytes(buffer.bytes), operand.offset, strides.to_string(),
                     moved);
}

/// The steps; their code goes to `code`, each text once.
Json step_data(const Explanation& e, Json& code) {
  const Plan& plan = *e.plan;
  const auto dependencies = step_dependencies(plan);
  const std::vector<StepCost> costs = costs_of(plan);
  std::map<std::string, std::size_t> known;
  Json steps = Json::array();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const StepCost& cost = costs[i];
    Json operands = Json::array();
    bool writes_output = false;
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      operands.push_back(describe(plan, step, k));
      const std::int32_t b = step.operands[k].buffer;
      writes_output |= b >= 0 && plan.buffers[static_cast<std::size_t>(b)].role == BufferRole::output;
    }
    Json pieces = Json::array();
    for (GeneratedCode& piece : generated_code(step, e.code)) {
      const auto [at, is_new] = known.emplace(piece.title + '\n' + piece.text, code.size());
      if (is_new) code.push_back({{"title", std::move(piece.title)}, {"text", std::move(piece.text)}});
      pieces.push_back(at->second);
    }
    Json item{{"name", step.name()},
              {"label", step.label},
              {"form", step.form()},
              {"dims", extents(step.dims)},
              {"dtype", name(step.dtype)},
              {"joined", step.joined || step.finishes},
              {"barrier", step.barrier_before},
              {"out", writes_output},
              {"ops", cost.ops},
              {"flops", cost.flops},
              {"read", cost.read_bytes},
              {"written", cost.written_bytes},
              {"scratch", cost.scratch_bytes},
              {"from", dependencies[i]},
              {"nodes", step.nodes},
              {"operands", std::move(operands)},
              {"code", std::move(pieces)}};
    if (i < e.step_seconds.size()) item["seconds"] = e.step_seconds[i];
    steps.push_back(std::move(item));
  }
  return steps;
}

std::string page_data(const Explanation& e) {
  const Plan& plan = *e.plan;
  Json code = Json::array();
  Json steps = step_data(e, code);
  const Json data{{"title", e.title},
                  {"device", plan.device.to_string()},
                  {"graph", graph_data(e.graph)},
                  {"outputs", e.graph.outputs},
                  {"steps", std::move(steps)},
                  {"code", std::move(code)},
                  {"dispatches", plan.dispatch_count()},
                  {"barriers", plan.barrier_count()},
                  {"arena_bytes", plan.arena_bytes},
                  {"peak_bytes", plan.peak_bytes},
                  {"executed", e.executed},
                  {"cache_hit", e.cache_hit},
                  {"submits", e.submits},
                  {"seconds", e.seconds}};
  // A title may hold anything; within a script element "</" would end it.
  std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1))
    text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace

std::string to_html(const Explanation& explanation) {
  std::string body = explain_page::kBody;
  constexpr std::string_view kPlace = "id=\"memory\">";
  body.insert(body.find(kPlace) + kPlace.size(), to_memory_svg(explanation));
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<title>Caldera: explain</title><style>";
  page.append(explain_page::kStyle).append("</style></head><body>").append(body);
  page.append("<script type=\"application/json\" id=\"data\">").append(page_data(explanation));
  page.append("</script>\n<script>").append(explain_page::kGraphScript).append(explain_page::kPageScript);
  return page + "</script></body></html>\n";
}

}  // namespace caldera
