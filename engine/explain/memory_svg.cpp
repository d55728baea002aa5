// The arena over time as a picture.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "engine/base/byte_size.h"
#include "engine/explain/explained_plan.h"
#include "engine/explain/explanation.h"

namespace caldera {
namespace {

constexpr double kLeft = 84;
constexpr double kWidth = 1060;  // of the plots
constexpr double kCurveTop = 34;
constexpr double kCurveHeight = 110;
constexpr double kArenaTop = 186;
constexpr double kArenaHeight = 340;
constexpr double kTotalWidth = kLeft + kWidth + 16;
constexpr double kTotalHeight = kArenaTop + kArenaHeight + 44;

// Colours by form, as in the page. A picture of its own follows the reader's theme too.
constexpr const char* kMemoryStyle =
    "<style>.cal-mem{--map:#4f86e8;--copy:#8b97a6;--reduce:#e58a2e;--row:#8a63d2;--contract:#2f9e6e;"
    "--attention:#d64d78;--index:#b8931c;--linalg:#1f93a8;--ink:#1c2530;--faint:#d9dfe7;--page:#fff;font:"
    "11px "
    "system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){.cal-mem{--map:#6d9df0;--copy:#7c8896;--reduce:#e89a4c;--row:#a385e0;"
    "--contract:#48b487;--attention:#e26d92;--index:#cbab45;--linalg:#4cb5c9;--ink:#dde4ec;--faint:#323c48;--"
    "page:#12171e}}"
    ".cal-mem text{fill:var(--ink)}.cal-mem .t{font-size:12px;font-weight:600}.cal-mem .q{opacity:.7}"
    ".cal-mem .g{stroke:var(--faint);fill:none}.cal-mem .b rect{stroke:var(--page);stroke-width:.6}"
    ".cal-mem .b rect:hover{stroke:var(--ink);stroke-width:1.5}.cal-mem .b "
    "text{fill:#fff;pointer-events:none}"
    ".cal-mem .live{fill:var(--map);fill-opacity:.22;stroke:var(--map);stroke-width:1.5}"
    ".cal-mem .high{stroke:var(--attention);stroke-dasharray:5 4;fill:none}.cal-mem "
    ".dot{fill:var(--attention)}"
    ".cal-mem .map{fill:var(--map)}.cal-mem .copy{fill:var(--copy)}.cal-mem .reduce{fill:var(--reduce)}"
    ".cal-mem .row{fill:var(--row)}.cal-mem .contract{fill:var(--contract)}"
    ".cal-mem .attention{fill:var(--attention)}.cal-mem .index{fill:var(--index)}.cal-mem "
    ".linalg{fill:var(--linalg)}</style>";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// About `count` round marks up to `highest`: steps of 1, 2 or 5 times a power of ten, or a power of two.
double tick_step(double highest, int count, bool binary) {
  const double rough = std::max(highest / count, 1.0);
  if (binary) return std::exp2(std::ceil(std::log2(rough)));
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

class MemoryPicture {
 public:
  explicit MemoryPicture(const Explanation& e)
      : plan_(*e.plan), lives_(arena_lives(plan_)), live_(live_bytes(plan_, lives_)) {}

  std::string draw() {
    if (lives_.empty()) return nothing();
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"cal-mem\" viewBox=\"0 0 {} {}\" role=\"img\" "
        "aria-label=\"arena over time\">{}",
        kTotalWidth, kTotalHeight, kMemoryStyle);
    axes();
    curve();
    buffers();
    return text_ + "</svg>\n";
  }

 private:
  static std::string nothing() {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"cal-mem\" viewBox=\"0 0 {} 48\" role=\"img\">{}"
        "<text x=\"{}\" y=\"28\" text-anchor=\"middle\">nothing is kept between steps: the arena is "
        "empty</text></svg>\n",
        kTotalWidth, kMemoryStyle, kTotalWidth / 2);
  }

  double x(std::size_t step) const {
    return kLeft + kWidth * static_cast<double>(step) /
                       static_cast<double>(std::max<std::size_t>(1, plan_.steps.size()));
  }
  /// Heights above the floor of a plot.
  double height(std::int64_t bytes, double plot) const {
    return plot * static_cast<double>(bytes) /
           static_cast<double>(std::max<std::int64_t>(1, plan_.arena_bytes));
  }

  void axes() {
    text_ += fmt::format(
        "<text class=\"t\" x=\"{0}\" y=\"16\">live bytes in the arena</text>"
        "<text class=\"t\" x=\"{0}\" y=\"{1}\">arena: a rectangle a buffer, from its first to its last "
        "step</text>"
        "<text class=\"q\" x=\"{2}\" y=\"{3}\" text-anchor=\"end\">step</text>",
        kLeft, kArenaTop - 14, kLeft + kWidth, kTotalHeight - 4);
    bytes_axis(kCurveTop + kCurveHeight, kCurveHeight, 2);
    bytes_axis(kArenaTop + kArenaHeight, kArenaHeight, 6);
    const auto steps = static_cast<double>(plan_.steps.size());
    const double every = tick_step(steps, 12, false);
    for (double s = 0; s < steps; s += every) {
      text_ +=
          fmt::format("<text class=\"q\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                      x(static_cast<std::size_t>(s)) + kWidth / steps / 2, kArenaTop + kArenaHeight + 17, s);
    }
  }

  void bytes_axis(double floor, double plot, int count) {
    const auto every =
        static_cast<std::int64_t>(tick_step(static_cast<double>(plan_.arena_bytes), count, true));
    for (std::int64_t bytes = 0; bytes <= plan_.arena_bytes; bytes += every) {
      const double y = floor - height(bytes, plot);
      text_ += fmt::format(
          "<path class=\"g\" d=\"M{} {:.1f}h{}\"/><text class=\"q\" x=\"{}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{}</text>",
          kLeft, y, kWidth, kLeft - 8, y + 4, format_bytes(bytes));
    }
  }

  void curve() {
    const double floor = kCurveTop + kCurveHeight;
    std::string path = fmt::format("M{:.1f} {:.1f}", x(0), floor);
    for (std::size_t i = 0; i < live_.size(); ++i)
      path += fmt::format("V{:.1f}H{:.2f}", floor - height(live_[i], kCurveHeight), x(i + 1));
    text_ += fmt::format("<path class=\"live\" d=\"{}V{:.1f}Z\"/>", path, floor);
    const auto top = static_cast<std::size_t>(std::max_element(live_.begin(), live_.end()) - live_.begin());
    const double y = floor - height(live_[top], kCurveHeight);
    const double at = (x(top) + x(top + 1)) / 2;
    const bool left = at > kLeft + kWidth / 2;
    text_ += fmt::format(
        "<path class=\"high\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><circle class=\"dot\" cx=\"{0:.1f}\" "
        "cy=\"{1:.1f}\" r=\"4\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"{5}\">peak {6} in step {7}; "
        "arena {8}</text>",
        at, y, kArenaTop + kArenaHeight, left ? at - 9 : at + 9, y - 5, left ? "end" : "start",
        format_bytes(live_[top]), top, format_bytes(plan_.arena_bytes));
  }

  void buffers() {
    text_ += "<g class=\"b\">";
    for (const BufferLife& life : lives_) buffer(life);
    text_ += "</g>";
  }

  void buffer(const BufferLife& life) {
    const PlanBuffer& b = plan_.buffers[life.buffer];
    const Step& step = plan_.steps[life.writer.value_or(life.first)];
    const double left = x(life.first);
    const double width = x(life.last + 1) - left;
    const double tall = std::max(height(b.bytes, kArenaHeight), 0.8);
    const double top = kArenaTop + kArenaHeight - height(b.arena_offset, kArenaHeight) - tall;
    const std::string name = step.name();
    text_ += fmt::format(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"><title>buffer {}: "
        "{}\n"
        "{} {}, {} ({} bytes) at {}\nsteps {} to {}, written by step {}</title></rect>",
        step.form(), left, top, width, tall, life.buffer, escaped(name), life.shape.to_string(),
        caldera::name(b.dtype), format_bytes(b.bytes), b.bytes, b.arena_offset, life.first, life.last,
        life.writer.value_or(life.first));
    const std::string shown = (step.label.empty() ? name : step.label) + " " + life.shape.to_string();
    if (tall < 14 || width < 7 * static_cast<double>(shown.size())) return;
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", left + 6, top + tall / 2 + 4,
                         escaped(shown));
  }

  const Plan& plan_;
  std::vector<BufferLife> lives_;
  std::vector<std::int64_t> live_;
  std::string text_;
};

}  // namespace

std::string to_memory_svg(const Explanation& explanation) { return MemoryPicture(explanation).draw(); }

}  // namespace caldera
