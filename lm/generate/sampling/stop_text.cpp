#include "lm/generate/sampling/stop_text.h"

#include <algorithm>
#include <utility>

namespace caldera {
namespace {

// The length of the longest end of `text` that is a beginning of `stop`, but not all of it.
std::size_t pending(std::string_view text, std::string_view stop) {
  for (std::size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n)
    if (stop.starts_with(text.substr(text.size() - n))) return n;
  return 0;
}

}  // namespace

StopText::StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
  std::stable_sort(stops_.begin(), stops_.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string StopText::push(std::string_view piece) {
  if (stopped()) return {};
  held_ += piece;
  std::size_t shown = 0;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos || at + stop.size() >= end) continue;
    end = at + stop.size();
    shown = at;
    found_ = stop;
  }
  if (!stopped()) {
    std::size_t kept = 0;
    for (const std::string& stop : stops_) kept = std::max(kept, pending(held_, stop));
    shown = held_.size() - kept;
  }
  std::string text = held_.substr(0, shown);
  held_.erase(0, stopped() ? held_.size() : shown);
  return text;
}

std::string StopText::finish() {
  if (stopped()) return {};
  return std::exchange(held_, {});
}

}  // namespace caldera
