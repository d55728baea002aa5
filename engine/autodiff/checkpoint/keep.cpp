#include "engine/autodiff/checkpoint/keep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <unordered_map>

#include "engine/base/error.h"
#include "engine/graph/jvp.h"
#include "engine/graph/node.h"
#include "engine/graph/vjp.h"
#include "ops/core/node_builder.h"

namespace caldera {
namespace {

/// attrs: the number of the name.
const OpDef kName{
    .name = "name", .kind = OpClass::identity, .vjp = ops::pass_cotangent, .jvp = ops::linear_jvp};

/// The number of a name in this process: a node's attributes are numbers.
std::int64_t number_of_name(const std::string& name) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::int64_t> numbers;
  const std::scoped_lock lock(mutex);
  return numbers.try_emplace(name, static_cast<std::int64_t>(numbers.size())).first->second;
}

bool is_product(const InnerValue& value) {
  const Node& node = value.tensor.node();
  return (node.kind() == OpClass::contract || node.kind() == OpClass::quantized ||
          node.kind() == OpClass::convolution) &&
         !value.is_in_attention;
}

/// A strategy that looks at each value alone.
Keep each(bool (*keeps)(const InnerValue&)) {
  return Keep([keeps](std::span<const InnerValue> values) {
    std::vector<bool> kept;
    kept.reserve(values.size());
    for (const InnerValue& value : values) kept.push_back(keeps(value));
    return kept;
  });
}

Keep by_name(std::initializer_list<std::string> names, bool kept_if_named) {
  std::set<std::int64_t> numbers;
  for (const std::string& name : names) numbers.insert(number_of_name(name));
  return Keep([numbers = std::move(numbers), kept_if_named](std::span<const InnerValue> values) {
    std::vector<bool> kept(values.size(), !kept_if_named);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Node& node = values[i].tensor.node();
      if (&node.op() != &kName || !numbers.contains(node.attributes()[0])) continue;
      kept[i] = kept_if_named;
      // The name and what has it are one value.
      if (!kept_if_named) {
        for (const std::uint32_t input : values[i].inputs) kept[input] = false;
      }
    }
    return kept;
  });
}

}  // namespace

std::vector<bool> Keep::operator()(std::span<const InnerValue> values) const {
  if (!choice_) return std::vector<bool>(values.size(), false);
  std::vector<bool> kept = choice_(values);
  if (kept.size() == values.size()) return kept;
  throw ValueError(
      fmt::format("checkpoint: the choice of what is kept says {} words on {} values; give one for each",
                  kept.size(), values.size()));
}

namespace keep {

Keep nothing() { return {}; }
Keep everything() {
  return each([](const InnerValue&) { return true; });
}
Keep products() { return each(is_product); }
Keep products_without_batch() {
  return each([](const InnerValue& value) { return is_product(value) && value.tensor.rank() <= 2; });
}
Keep named(std::initializer_list<std::string> names) { return by_name(names, true); }
Keep all_but(std::initializer_list<std::string> names) { return by_name(names, false); }

}  // namespace keep

LazyTensor name(const LazyTensor& x, std::string_view name) {
  if (name.empty()) throw ValueError("name: the name is empty; give one that strategies can speak of");
  const std::array<std::int64_t, 1> attributes{number_of_name(std::string(name))};
  return ops::make(kName, x.shape(), x.dtype(), {x}, attributes);
}

}  // namespace caldera
