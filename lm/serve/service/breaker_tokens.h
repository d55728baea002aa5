// BreakerTokens: the tokens that no repetition goes across, of the texts that requests name.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lm/serve/service/served_model.h"

namespace caldera::serve {

/// May be used from any thread.
class BreakerTokens {
 public:
  /// Keeps a reference.
  explicit BreakerTokens(const ServedModel& model) : model_(model) {}

  /// Finds the tokens whose texts have one of these within, in order; else one of llama.cpp's: the end of a
  /// line, a colon, a quotation mark, an asterisk. Throws ApiError 400 for a text that no token has.
  std::vector<std::int32_t> tokens_of(const std::optional<std::vector<std::string>>& texts);

 private:
  const std::vector<std::int32_t>& tokens_with(const std::string& text);

  const ServedModel& model_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::vector<std::int32_t>>> known_;  // the last used first
};

}  // namespace caldera::serve
