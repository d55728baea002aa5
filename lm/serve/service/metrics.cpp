#include "lm/serve/service/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace caldera::serve {

void Histogram::add(double seconds) {
  const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts_[static_cast<std::size_t>(bound - kBounds.begin())];
  sum_ += seconds;
}

void Histogram::print(const std::string& name, const std::string& help, std::string& out) const {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    sum += counts_[i];
    out += fmt::format("{}_bucket{{le=\"{:g}\"}} {}\n", name, kBounds[i], sum);
  }
  sum += counts_.back();
  out += fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, sum, sum_);
}

void Metrics::count_request(const std::string& endpoint, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++requests_[{endpoint, status}];
  durations_.add(seconds);
}

void Metrics::count_first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_tokens_.add(seconds);
}

void Metrics::count_tokens(std::int64_t prompt, std::int64_t generated) {
  const std::lock_guard lock(mutex_);
  prompt_tokens_ += static_cast<std::uint64_t>(prompt);
  generated_tokens_ += static_cast<std::uint64_t>(generated);
}

void Metrics::count_disconnect() {
  const std::lock_guard lock(mutex_);
  ++disconnects_;
}

std::int64_t Metrics::add_active(std::int64_t change) {
  const std::lock_guard lock(mutex_);
  return active_ += change;
}

std::int64_t Metrics::active() const {
  const std::lock_guard lock(mutex_);
  return active_;
}

std::string Metrics::text(const BatchStatus& engine) const {
  const std::lock_guard lock(mutex_);
  std::string out;
  const auto line = [&](const char* name, const char* type, const char* help, auto value) {
    out += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n{0} {3}\n", name, type, help, value);
  };
  out += "# HELP caldera_requests_total Requests answered.\n# TYPE caldera_requests_total counter\n";
  for (const auto& [key, count] : requests_)
    out += fmt::format("caldera_requests_total{{endpoint=\"{}\",status=\"{}\"}} {}\n", key.first, key.second,
                       count);
  durations_.print("caldera_request_seconds", "Time from a request to the end of its answer.", out);
  first_tokens_.print("caldera_time_to_first_token_seconds", "Time from a request to its first text.", out);
  line("caldera_prompt_tokens_total", "counter", "Tokens of prompts.", prompt_tokens_);
  line("caldera_generated_tokens_total", "counter", "Tokens generated.", generated_tokens_);
  line("caldera_disconnects_total", "counter", "Clients that left before their answer ended.", disconnects_);
  line("caldera_requests_active", "gauge", "Requests for texts under way.", active_);
  line("caldera_batch_running", "gauge", "Texts in the batch.", engine.running);
  line("caldera_batch_waiting", "gauge", "Texts in the queue.", engine.waiting);
  line("caldera_cache_pages", "gauge", "Pages of the cache of keys and values.", engine.pages);
  line("caldera_cache_pages_in_use", "gauge", "Pages that texts in the batch hold.", engine.pages_in_use);
  line("caldera_cache_bytes", "gauge", "Bytes of the cache of keys and values.", engine.cache_bytes);
  line("caldera_reused_tokens_total", "counter", "Tokens of prompts that were in the cache.",
       engine.reused_tokens);
  line("caldera_drafted_tokens_total", "counter", "Tokens that were guessed and checked.",
       engine.drafted_tokens);
  line("caldera_accepted_tokens_total", "counter", "Guessed tokens that were kept.", engine.accepted_tokens);
  line("caldera_preempted_total", "counter", "Times that a text gave its pages up.", engine.preempted);
  line("caldera_recomputed_tokens_total", "counter", "Tokens computed again, as their pages were given up.",
       engine.recomputed_tokens);
  line("caldera_shifted_total", "counter", "Times that a text went on without some of its tokens.",
       engine.shifted);
  return out;
}

}  // namespace caldera::serve
