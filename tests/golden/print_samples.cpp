// Prints every sample of the table of operations as JSON, one call a line: what generate.py makes the golden
// files of.
#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/golden/golden.h"

namespace caldera::testing {
namespace {

using nlohmann::json;

json to_json(const catalogue::Arguments::Value& value) {
  return std::visit(
      [](const auto& x) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, DType>) {
          return {{"dtype", name(x)}};
        } else if constexpr (std::is_same_v<std::decay_t<decltype(x)>, double>) {
          return std::isfinite(x) ? json(x) : json(x > 0 ? "inf" : "-inf");  // JSON has no infinities
        } else {
          return x;
        }
      },
      value);
}

json to_json(const Host& values, DType type) {
  json shape = json::array();
  for (const std::int64_t extent : values.shape) shape.push_back(extent);
  return {{"shape", shape}, {"dtype", name(type)}, {"values", values.values}};
}

void print(const catalogue::Operation& operation, const GoldenCall& call) {
  const std::vector<Host> values = operand_values(call.sample, call.type);
  json arguments = json::object();
  for (const auto& [key, value] : call.sample.arguments.values()) arguments[key] = to_json(value);
  json operands = json::array();
  for (std::size_t i = 0; i < values.size(); ++i) {
    operands.push_back(to_json(values[i], call.sample.operands[i].dtype.value_or(call.type)));
    operands.back()["varies"] = call.sample.operands[i].varies();
  }
  fmt::print("{}\n", json{{"op", operation.name},
                          {"family", operation.family},
                          {"sample", call.index},
                          {"dtype", name(call.type)},
                          {"digest", digest_of(call)},
                          {"gradient", operation.gradient == catalogue::Gradient::full},
                          {"arguments", arguments},
                          {"operands", operands}}
                         .dump());
}

}  // namespace
}  // namespace caldera::testing

int main() {
  namespace catalogue = caldera::catalogue;
  namespace testing = caldera::testing;
  for (const catalogue::Operation* operation : catalogue::operations()) {
    for (const testing::GoldenCall& call : testing::golden_calls(*operation))
      testing::print(*operation, call);
  }
}
