#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/ops/operations/edges/edges.h"
#include "tests/support/operation_calls.h"

namespace caldera::testing {
namespace {

using catalogue::Arguments;
using catalogue::Operation;
using catalogue::Sample;
using nlohmann::json;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeast = std::numeric_limits<std::int32_t>::min(),
                 kMost = std::numeric_limits<std::int32_t>::max();

/// An edge: the operands' elements, each operand with its shape.
struct Edge {
  std::string name;
  std::vector<Host> operands;
  bool along_axis = false;  // the axis is named, where the operation takes one
};

Host vector_of(std::vector<double> values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return Host(shape, std::move(values));
}
Host number(double x) { return Host(Shape{}, {x}); }

bool is_of(const Operation& operation, std::initializer_list<std::string_view> families) {
  return std::find(families.begin(), families.end(), operation.family) != families.end();
}

std::size_t fewest_operands(const Operation& operation) {
  std::size_t fewest = 99;
  for (const Sample& sample : operation.samples(operation)) fewest = std::min(fewest, sample.operands.size());
  return fewest;
}

/// All operands have the call's type.
bool is_open(const Operation& operation) {
  const std::vector<Sample> samples = operation.samples(operation);
  return std::all_of(samples[0].operands.begin(), samples[0].operands.end(),
                     [](const catalogue::Operand& x) { return x.varies(); });
}

/// The last axis, as the operation's samples name one.
Arguments last_axis(const Operation& operation) {
  for (const Sample& sample : operation.samples(operation)) {
    for (const auto& [name, value] : sample.arguments.values()) {
      if (name != "axis") continue;
      if (std::holds_alternative<Arguments::Integers>(value)) return {{"axis", Arguments::Integers{-1}}};
      return {{"axis", std::int64_t{-1}}};
    }
  }
  return {};
}

/// Of operations that need an argument: those of its first sample that are no axis.
Arguments needed_arguments(const Operation& operation) {
  Arguments out;
  const std::vector<Sample> samples = operation.samples(operation);
  for (const auto& [name, value] : samples[0].arguments.values()) {
    if (name == "k" || name == "n" || name == "p" || name == "mode" || name == "lambda") out.set(name, value);
  }
  if (operation.name == "topk" || operation.name == "kthvalue") out.set("k", std::int64_t{1});
  return out;
}

EdgeSection section_of(std::string title, std::string remark, const std::vector<Edge>& edges, DType type,
                       const std::vector<const Operation*>& operations) {
  EdgeSection out{.title = std::move(title), .remark = std::move(remark), .edges = {}, .rows = {}};
  for (const Edge& edge : edges) out.edges.push_back(edge.name);
  for (const Operation* operation : operations) {
    std::vector<EdgeCall> row;
    for (const Edge& edge : edges) {
      Arguments arguments = needed_arguments(*operation);
      if (edge.along_axis) {
        const Arguments axis = last_axis(*operation);
        for (const auto& [name, value] : axis.values()) arguments.set(name, value);
      }
      row.push_back({.operation = operation,
                     .edge = edge.name,
                     .operands = edge.operands,
                     .type = type,
                     .arguments = arguments,
                     .key = fmt::format("{}/{}/{}", out.title, operation->name, edge.name)});
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

template <class Holds>
std::vector<const Operation*> those(Holds holds) {
  std::vector<const Operation*> out;
  for (const Operation* operation : catalogue::operations()) {
    if (is_open(*operation) && holds(*operation)) out.push_back(operation);
  }
  return out;
}

std::vector<EdgeSection> all_sections() {
  const auto unary = [](const std::string& name, double x) { return Edge{name, {number(x)}}; };
  const auto binary = [](const std::string& name, double x, double y) {
    return Edge{name, {number(x), number(y)}};
  };
  const auto elements = [](const Operation& o, std::size_t count, DType type) {
    return fewest_operands(o) == count && o.types.contains(type) &&
           is_of(o, {"elementwise_unary", "elementwise_binary", "functions", "activations", "special",
                     "bitwise", "cumulative"}) &&
           last_axis(o).values().empty() && o.name != "astype" && o.name != "glu" && o.name != "prelu" &&
           o.name != "clip" && o.name != "cumulative_sum";
  };
  const auto reduces = [](const Operation& o, DType type) {
    return fewest_operands(o) == 1 && o.types.contains(type) && !last_axis(o).values().empty() &&
           is_of(o, {"reduction", "statistics", "nan_reductions", "indexed_extrema", "order_statistics",
                     "cumulative", "sorting", "normalization", "products"}) &&
           o.name != "cumulative_sum" && o.name != "vecdot" && o.name != "cross";
  };
  std::vector<EdgeSection> out;
  out.push_back(section_of("One number", "Functions of one floating number.",
                           {unary("-inf", -kInf), unary("-2", -2), unary("-1", -1), unary("-0", -0.0),
                            unary("0", 0), unary("1", 1), unary("inf", kInf), unary("NaN", kNone)},
                           DType::f32,
                           those([&](const Operation& o) { return elements(o, 1, DType::f32); })));
  out.push_back(
      section_of("Two numbers", "Functions of two floating numbers.",
                 {binary("0, 0", 0, 0), binary("0, -0", 0, -0.0), binary("1, 0", 1, 0),
                  binary("-1, 0", -1, 0), binary("0, -1", 0, -1), binary("inf, 0", kInf, 0),
                  binary("0, inf", 0, kInf), binary("inf, inf", kInf, kInf), binary("inf, -inf", kInf, -kInf),
                  binary("NaN, 1", kNone, 1), binary("1, NaN", 1, kNone)},
                 DType::f32, those([&](const Operation& o) { return elements(o, 2, DType::f32); })));
  out.push_back(section_of(
      "Along an axis",
      "Of a tensor without axes (3, with axis -1), a vector of no elements, and vectors of two, along their "
      "axis. Operations of several results have one after the other.",
      {{"no axes", {number(3)}, true},
       {"no elements", {vector_of({})}, true},
       {"1 NaN", {vector_of({1, kNone})}, true},
       {"1 inf", {vector_of({1, kInf})}, true},
       {"inf -inf", {vector_of({kInf, -kInf})}, true},
       {"-inf -inf", {vector_of({-kInf, -kInf})}, true},
       {"-0 0", {vector_of({-0.0, 0.0})}, true}},
      DType::f32, those([&](const Operation& o) { return reduces(o, DType::f32); })));
  out.push_back(section_of("One integer at the limits", "Functions of one int32, -2147483648 to 2147483647.",
                           {unary("min", kLeast), unary("-1", -1), unary("0", 0), unary("max", kMost)},
                           DType::i32,
                           those([&](const Operation& o) { return elements(o, 1, DType::i32); })));
  out.push_back(section_of(
      "Two integers at the limits", "Functions of two int32.",
      {binary("max, 1", kMost, 1), binary("min, 1", kLeast, 1), binary("min, -1", kLeast, -1),
       binary("max, max", kMost, kMost), binary("1, 0", 1, 0), binary("-1, 0", -1, 0), binary("0, 0", 0, 0)},
      DType::i32, those([&](const Operation& o) { return elements(o, 2, DType::i32); })));
  out.push_back(section_of("Integers along an axis", "Of int32.",
                           {{"no elements", {vector_of({})}, true},
                            {"max 1", {vector_of({kMost, 1})}, true},
                            {"min -1", {vector_of({kLeast, -1})}, true}},
                           DType::i32, those([&](const Operation& o) { return reduces(o, DType::i32); })));
  return out;
}

json json_of(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}
double from_json(const json& x) {
  if (!x.is_string()) return x.get<double>();
  const auto text = x.get<std::string>();
  return text == "nan" ? kNone : text == "inf" ? kInf : -kInf;
}

}  // namespace

const std::vector<EdgeSection>& edge_sections() {
  static const std::vector<EdgeSection> kAll = all_sections();
  return kAll;
}

EdgeValue value_at(const EdgeCall& call, Device device) {
  try {
    std::vector<LazyTensor> operands;
    operands.reserve(call.operands.size());
    for (const Host& values : call.operands) operands.push_back(upload(values, call.type, device));
    std::vector<double> out;
    for (const LazyTensor& result : call.operation->call(operands, call.arguments)) {
      const std::vector<double> part = numbers(result);
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  } catch (const Error&) {
    return std::nullopt;
  }
}

ForeignValue foreign_value_at(const EdgeCall& call) {
  static const json kGolden = [] {
    std::ifstream file("tests/golden/edges/values.json");
    return file ? json::parse(file) : json::object();
  }();
  const auto found = kGolden.find(call.key);
  if (found == kGolden.end()) return {};
  if (!found->is_array()) return {.known = true, .value = std::nullopt};
  std::vector<double> values;
  for (const json& x : *found) values.push_back(from_json(x));
  return {.known = true, .value = std::move(values)};
}

bool agree(const EdgeValue& ours, const ForeignValue& theirs) {
  if (!theirs.known || !theirs.value) return true;
  if (!ours || ours->size() != theirs.value->size()) return false;
  for (std::size_t i = 0; i < ours->size(); ++i) {
    const double a = (*ours)[i], b = (*theirs.value)[i];
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    if (!(std::abs(a - b) <= 2e-6 * (1 + std::abs(b)))) return false;
  }
  return true;
}

std::string edge_calls_as_json() {
  std::string out;
  for (const EdgeSection& section : edge_sections()) {
    for (const std::vector<EdgeCall>& row : section.rows) {
      for (const EdgeCall& call : row) {
        json operands = json::array();
        for (const Host& x : call.operands) {
          json shape = json::array(), values = json::array();
          for (const std::int64_t extent : x.shape) shape.push_back(extent);
          for (const double value : x.values) values.push_back(json_of(value));
          operands.push_back({{"shape", shape}, {"values", values}});
        }
        json arguments = json::object();
        for (const auto& [key, value] : call.arguments.values())
          arguments[key] = std::visit(
              [](const auto& x) -> json {
                if constexpr (std::is_same_v<std::decay_t<decltype(x)>, DType>)
                  return {{"dtype", name(x)}};
                else
                  return x;
              },
              value);
        out += json{{"key", call.key},
                    {"op", call.operation->name},
                    {"dtype", call.type == DType::f32 ? "float64" : name(call.type)},
                    {"operands", operands},
                    {"arguments", arguments}}
                   .dump() +
               "\n";
      }
    }
  }
  return out;
}

}  // namespace caldera::testing
