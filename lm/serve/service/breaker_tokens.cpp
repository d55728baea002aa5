#include "lm/serve/service/breaker_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "lm/base/json_file.h"
#include "lm/serve/protocol/api_error.h"

namespace caldera::serve {
namespace {

constexpr std::size_t kMostKnown = 64;

}  // namespace

std::vector<std::int32_t> BreakerTokens::tokens_of(const std::optional<std::vector<std::string>>& texts) {
  static const std::vector<std::string> kUsual{"\n", ":", "\"", "*"};
  const std::lock_guard lock(mutex_);
  std::vector<std::int32_t> all;
  for (const std::string& text : texts ? *texts : kUsual) {
    const std::vector<std::int32_t>& tokens = tokens_with(text);
    if (texts && tokens.empty())
      throw bad_request(
          fmt::format("'dry_sequence_breakers': no token of the vocabulary has '{}' in its text",
                      caldera::detail::printable(text.substr(0, 40))),
          "dry_sequence_breakers");
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

const std::vector<std::int32_t>& BreakerTokens::tokens_with(const std::string& text) {
  const auto found = std::ranges::find(known_, text, [](const auto& entry) { return entry.first; });
  if (found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
    return known_.front().second;
  }
  std::vector<std::int32_t> tokens;
  for (std::int64_t id = 0; !text.empty() && id < model_.tokenizer->vocab_size(); ++id)
    if (model_.tokenizer->token_bytes(static_cast<std::int32_t>(id)).find(text) != std::string::npos)
      tokens.push_back(static_cast<std::int32_t>(id));
  known_.emplace_front(text, std::move(tokens));
  if (known_.size() > kMostKnown) known_.pop_back();
  return known_.front().second;
}

}  // namespace caldera::serve
