#include "lm/base/json_text.h"

#include <nlohmann/json.hpp>

#include "engine/base/error.h"

namespace caldera::detail {
namespace {

std::string dump(const nlohmann::ordered_json& json, int indent) {
  try {
    return json.dump(indent);
  } catch (const nlohmann::json::exception&) {
    throw ValueError("a string is not UTF-8");
  }
}

}  // namespace

std::string to_json(const JsonMembers& members, int indent) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : members) {
    nlohmann::ordered_json& slot = json[name];
    std::visit(
        [&](const auto& v) {
          if constexpr (std::is_same_v<decltype(v), const EmptyObject&>)
            slot = nlohmann::ordered_json::object();
          else if constexpr (std::is_same_v<decltype(v), const RawJson&>)
            slot = nlohmann::ordered_json::parse(v.text);
          else
            slot = v;
        },
        value);
  }
  return dump(json, indent);
}

std::string json_string(std::string_view text) { return dump(nlohmann::ordered_json(text), -1); }

}  // namespace caldera::detail
