// What the tests of chat templates share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lm/chat/template/chat_template.h"

namespace caldera::testing {

/// 22 November 2026, noon, for what asks for the time.
inline constexpr auto kNoon =
    std::chrono::local_days(std::chrono::year(2026) / std::chrono::November / 22) + std::chrono::hours(12);

inline ChatTemplateInput input_with(nlohmann::ordered_json variables) {
  ChatTemplateInput input;
  input.variables = std::move(variables);
  input.now = kNoon;
  return input;
}

inline RenderedChat render(const std::string& source,
                           nlohmann::ordered_json variables = nlohmann::ordered_json::object(),
                           const ChatTemplateLimits& limits = {}) {
  return ChatTemplate(source, limits).render(input_with(std::move(variables)));
}

}  // namespace caldera::testing
