#include "benches/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace caldera::bench {
namespace {

constexpr double kWidth = 960, kLeft = 190, kRight = 860, kTop = 64, kLine = 22, kDot = 4;
/// Ratios at the ends of the axis; what lies beyond is drawn there.
constexpr double kLeast = 1.0 / 16, kMost = 4;
/// A row from here on carries its name.
constexpr double kSlower = 1.05;

struct Dot {
  std::string name;  // within its family
  std::string text;
  std::string_view colour;
  double ratio = 0;
};

struct Family {
  std::string name;
  std::vector<Dot> dots;
};

struct Bound {
  const char* name;
  const char* colour;
};
/// Colours that people with any colour vision tell apart (Okabe and Ito, 2008).
constexpr Bound kBounds[] = {{"compute", "#0072b2"}, {"memory", "#e69f00"}, {"overhead", "#999999"}};

std::string_view colour_of(const std::string& bound) {
  for (const Bound& b : kBounds)
    if (bound == b.name) return b.colour;
  return kBounds[2].colour;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

/// Rows by the first two parts of their names, in the order of the results.
std::vector<Family> families_of(std::span<const Result> results) {
  std::vector<Family> families;
  for (const Result& r : results) {
    const auto peer = std::ranges::find_if(r.peers, [](const auto& p) { return p.first != "named"; });
    if (peer == r.peers.end() || !(peer->second.us > 0) || !(r.total_us > 0)) continue;
    const std::size_t first = r.name.find('/');
    const std::size_t second = first == std::string::npos ? first : r.name.find('/', first + 1);
    const std::string family = r.name.substr(0, second);
    auto at = std::ranges::find(families, family, &Family::name);
    if (at == families.end()) at = families.insert(families.end(), Family{family, {}});
    const double ratio = r.total_us / peer->second.us;
    at->dots.push_back({second == std::string::npos ? std::string() : r.name.substr(second + 1),
                        fmt::format("{}: {:.2f} ({:.4g} us; {} {:.4g} us)", r.name, ratio, r.total_us,
                                    peer->first, peer->second.us),
                        colour_of(r.bound_by), ratio});
  }
  return families;
}

double place_of(double ratio) {
  const double share = std::log(std::clamp(ratio, kLeast, kMost) / kLeast) / std::log(kMost / kLeast);
  return kLeft + share * (kRight - kLeft);
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text,
                    std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     escaped(text));
}

double geometric_mean(const std::vector<Dot>& dots) {
  double sum = 0;
  for (const Dot& d : dots) sum += std::log(d.ratio);
  return std::exp(sum / static_cast<double>(dots.size()));
}

std::string axis(double bottom) {
  std::string out;
  for (double ratio = kLeast; ratio <= kMost; ratio *= 2) {
    const double x = place_of(ratio);
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
        "stroke-width=\"{4}\"/>\n",
        x, kTop - 8, bottom, ratio == 1 ? "#000" : "#ddd", ratio == 1 ? "1.5" : "1");
    out += text_at(x, kTop - 14, "middle",
                   ratio >= 1 ? fmt::format("{:g}", ratio) : fmt::format("1/{:g}", 1 / ratio));
  }
  return out;
}

std::string line_of(const Family& family, double y) {
  std::string out = text_at(kLeft - 12, y + 4, "end", family.name);
  out += text_at(kRight + 34, y + 4, "start", fmt::format("{:.2f}", geometric_mean(family.dots)));
  const Dot* slowest = nullptr;
  for (const Dot& d : family.dots) {
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" "
        "fill-opacity=\"0.75\"><title>{}</title></circle>\n",
        place_of(d.ratio), y, kDot, d.colour, escaped(d.text));
    if (d.ratio > kSlower && (slowest == nullptr || d.ratio > slowest->ratio)) slowest = &d;
  }
  if (slowest != nullptr && !slowest->name.empty())
    out += text_at(place_of(slowest->ratio) + 7, y + 4, "start", slowest->name,
                   " font-size=\"10\" fill=\"#555\"");
  return out;
}

}  // namespace

std::string to_svg(std::span<const Result> results) {
  const std::vector<Family> families = families_of(results);
  const double bottom = kTop + kLine * static_cast<double>(std::max<std::size_t>(families.size(), 1));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1:.0f}\" width=\"{0}\" "
      "height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kWidth, bottom + 40);
  if (families.empty())
    return out + text_at(kWidth / 2, kTop, "middle", "No row of this run has a peer.") + "</svg>\n";
  out += text_at(kLeft, 20, "start", "Time over the peer's, a dot a row: left of 1 is faster than the peer",
                 " font-weight=\"bold\"");
  out += text_at(kRight + 34, kTop - 14, "start", "mean");
  out += axis(bottom);
  double y = kTop + kLine / 2;
  for (const Family& family : families) {
    out += line_of(family, y);
    y += kLine;
  }
  double x = kLeft;
  for (const Bound& b : kBounds) {
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", x, bottom + 22, kDot,
                       b.colour);
    out += text_at(x + 9, bottom + 26, "start", fmt::format("bound by {}", b.name));
    x += 140;
  }
  return out + "</svg>\n";
}

}  // namespace caldera::bench
