#include "training/trainer/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "engine/base/byte_size.h"

namespace caldera {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::int64_t kPlainLines = 20;
constexpr std::chrono::milliseconds kRedraw{100};

int terminal_width(std::FILE* stream) {
  winsize size{};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string duration(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

/// "12.3 ms", "4.56 s": three digits.
std::string short_time(double seconds) {
  const double value = seconds < 1 ? seconds * 1000 : seconds;
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, seconds < 1 ? "ms" : "s");
}

/// What is at the end of a line where several ranks train: the one that the others wait for.
std::string slowest(const StepRecord& record) {
  return record.slowest.empty() ? std::string() : "  slowest: " + record.slowest;
}

/// What is behind the loss: "  rewards/margins 0.1234".
std::string shown(const std::vector<Metric>& metrics) {
  std::string text;
  for (const Metric& metric : metrics) text += fmt::format("  {} {:.4g}", metric.name, metric.value);
  return text;
}

}  // namespace

ProgressObserver::ProgressObserver(std::FILE* stream)
    : ProgressObserver(stream, isatty(fileno(stream)) == 1) {}
ProgressObserver::ProgressObserver(std::FILE* stream, bool terminal) : stream_(stream), terminal_(terminal) {}

void ProgressObserver::on_begin(std::int64_t total_steps) {
  total_ = total_steps;
  every_ = std::max<std::int64_t>(1, total_steps / kPlainLines);
  start_ = drawn_ = Clock::now();
  begin_line(start_);
}

void ProgressObserver::on_memory(const MemoryChoice& memory) { fmt::print(stream_, "{}\n", to_text(memory)); }

void ProgressObserver::on_step(const StepRecord& record) {
  const Clock::time_point now = Clock::now();
  constexpr double kKept = 0.9;
  const bool first = record.step == first_step_;
  smooth_loss_ = first ? record.loss : kKept * smooth_loss_ + (1 - kKept) * record.loss;
  tokens_ += record.tokens;
  loss_sum_ += record.loss;
  ++steps_;
  if (terminal_) {
    if (record.step == total_ || now - drawn_ >= kRedraw) draw_bar(record, now);
  } else if (first || record.step == total_ || record.step % every_ == 0) {
    write_line(record, now);
  }
  if (first) start_ = now;
}

void ProgressObserver::on_validation(const ValidationRecord& record) {
  erase_bar();
  fmt::print(stream_, "step {}/{}  validation loss {:.4f}{}\n", record.step, total_, record.loss,
             shown(record.metrics));
  std::fflush(stream_);
  begin_line(Clock::now());  // the time that validation took is not training's
}

void ProgressObserver::on_end() {
  if (bar_visible_) std::fputc('\n', stream_);  // the last state stays on the screen
  bar_visible_ = false;
  std::fflush(stream_);
}

std::string ProgressObserver::remaining(std::int64_t step, Clock::time_point now) const {
  if (step <= first_step_) return "-:--";
  const double a_step = Seconds(now - start_).count() / static_cast<double>(step - first_step_);
  return duration(a_step * static_cast<double>(total_ - step));
}

void ProgressObserver::begin_line(Clock::time_point now) {
  line_time_ = now;
  tokens_ = steps_ = 0;
  loss_sum_ = 0;
}

void ProgressObserver::write_line(const StepRecord& record, Clock::time_point now) {
  const double seconds = std::max(Seconds(now - line_time_).count(), 1e-9);
  const auto steps = static_cast<double>(steps_);
  fmt::print(stream_, "step {}/{}  loss {:.4f}{}  lr {:.2e}  {:.0f} tok/s  {}/step  {}  ETA {}{}\n",
             record.step, total_, loss_sum_ / steps, shown(record.metrics), record.learning_rate,
             static_cast<double>(tokens_) / seconds, short_time(seconds / steps),
             format_bytes(static_cast<std::int64_t>(record.peak_bytes)), remaining(record.step, now),
             slowest(record));
  std::fflush(stream_);
  begin_line(now);
}

void ProgressObserver::draw_bar(const StepRecord& record, Clock::time_point now) {
  const std::string tail = fmt::format(" {}/{}  loss {:.4f}  {:.0f} tok/s  {}/step  {}  ETA {}{}",
                                       record.step, total_, smooth_loss_, record.tokens_per_second,
                                       short_time((record.host_ms + record.device_ms) / 1000),
                                       format_bytes(static_cast<std::int64_t>(record.peak_bytes)),
                                       remaining(record.step, now), slowest(record));
  // One column stays free: a full last column wraps on some terminals.
  const int room = terminal_width(stream_) - static_cast<int>(tail.size()) - 3;
  const int width = std::clamp(room, 0, 40);
  const auto filled = static_cast<int>(width * record.step / std::max<std::int64_t>(total_, 1));
  std::string bar;
  if (width > 0) {
    bar = fmt::format("[{}{}]", std::string(static_cast<std::size_t>(filled), '='),
                      std::string(static_cast<std::size_t>(width - filled), ' '));
  }
  fmt::print(stream_, "\r{}{}\x1b[K", bar, tail);
  std::fflush(stream_);
  bar_visible_ = true;
  drawn_ = now;
}

void ProgressObserver::erase_bar() {
  if (bar_visible_) std::fputs("\r\x1b[K", stream_);
  bar_visible_ = false;
}

}  // namespace caldera
