#include "engine/device/vulkan/glsl/online.h"

#include <algorithm>
#include <optional>

namespace caldera {
namespace {

/// The operand and the maximum of v = x - row_max(x).
std::optional<OnlineSum> difference(const Kernel& kernel, std::uint16_t v) {
  const Instruction& sub = kernel.code[v];
  if (sub.op != ScalarOp::sub || sub.type != DType::f32) return std::nullopt;
  const Instruction& maximum = kernel.code[sub.b];
  if (maximum.op != ScalarOp::row_maximum || maximum.type != DType::f32 || maximum.a != sub.a ||
      kernel.code[sub.a].type != DType::f32)
    return std::nullopt;
  return OnlineSum{.maximum = sub.b, .x = sub.a};
}

std::optional<OnlineSum> online_sum(const Kernel& kernel, std::uint16_t sum) {
  const Instruction& i = kernel.code[sum];
  const Instruction& added = kernel.code[i.a];
  if (i.op != ScalarOp::row_sum || i.type != DType::f32 || added.type != DType::f32) return std::nullopt;
  std::optional<OnlineSum> found;
  if (added.op == ScalarOp::exp) found = difference(kernel, added.a);
  if (added.op == ScalarOp::select && kernel.code[added.a].type == DType::boolean &&
      kernel.code[added.c].type == DType::f32) {
    found = difference(kernel, added.b);
    if (found) {
      found->picks = true;
      found->condition = added.a;
      found->other = added.c;
    }
  }
  if (found) found->sum = sum;
  return found;
}

}  // namespace

std::vector<OnlineSum> online_sums(const Kernel& kernel, const RowPhases& phases, const RowWalks& plan,
                                   int pass) {
  const auto at = static_cast<std::size_t>(pass);
  if (at + 1 >= plan.walks.size() || !plan.walks[at + 1].outputs.empty()) return {};
  std::vector<OnlineSum> sums;
  for (const std::uint16_t r : plan.walks[at + 1].reductions) {
    const std::optional<OnlineSum> sum = online_sum(kernel, r);
    if (!sum || std::ranges::count(plan.walks[at].reductions, sum->maximum) == 0) return {};
    if (sum->picks && (phases.phase[sum->condition] > pass || phases.phase[sum->other] > pass)) return {};
    sums.push_back(*sum);
  }
  return sums;
}

GlslOnline::GlslOnline(std::vector<OnlineSum> sums, int width, GlslBody& body)
    : sums_(std::move(sums)), width_(width), body_(body) {
  for (const OnlineSum& s : sums_) {
    if (std::ranges::count(maxima_, s.maximum) > 0) continue;
    maxima_.push_back(s.maximum);
    numbers_.push_back(s.x);
  }
}

void GlslOnline::declare() {
  body_.needs.calls.insert("constants");
  body_.needs.calls.insert("f_exp");
  for (const std::uint16_t m : maxima_) body_.line("float v{}_seen = -infinity();", m);
  for (const OnlineSum& s : sums_) {
    body_.line("float v{} = 0.0;", s.sum);
    // How many were picked; what was added up of whole blocks.
    body_.line("float v{}_{} = 0.0;", s.sum, s.picks ? "number" : "blocks");
  }
  body_.line("uint groups = 0u;");
}

void GlslOnline::begin_group() {
  for (const std::uint16_t m : maxima_) body_.line("float v{}_x[{}];", m, width_);
  for (const OnlineSum& s : sums_) {
    if (!s.picks) continue;
    body_.line("bool v{}_picked[{}];", s.sum, width_);
    body_.line("float v{}_other[{}];", s.sum, width_);
  }
}

void GlslOnline::note_point() {
  for (std::size_t m = 0; m < maxima_.size(); ++m) body_.line("v{}_x[e] = v{};", maxima_[m], numbers_[m]);
  for (const OnlineSum& s : sums_) {
    if (!s.picks) continue;
    body_.line("v{}_picked[e] = v{};", s.sum, s.condition);
    body_.line("v{}_other[e] = v{};", s.sum, s.other);
  }
}

/// From the maximum that was seen to the one that is. Relative to -infinity a sum of exponentials is 0 and a
/// picked difference -infinity: either is what it has to be once it is brought to a number.
void GlslOnline::rescale(const OnlineSum& s) {
  if (s.picks) {
    body_.line("if (v{0}_number != 0.0) v{0} += v{0}_number * (v{1}_seen - v{1});", s.sum, s.maximum);
    return;
  }
  body_.line("const float v{0}_scale = f_exp(v{1}_seen - v{1});", s.sum, s.maximum);
  body_.line("v{0} *= v{0}_scale;", s.sum);
  body_.line("v{0}_blocks *= v{0}_scale;", s.sum);
}

void GlslOnline::end_group() {
  for (const std::uint16_t m : maxima_) {
    body_.open("if (v{0} != v{0}_seen) {{", m);
    for (const OnlineSum& s : sums_) {
      if (s.maximum == m) rescale(s);
    }
    body_.line("v{0}_seen = v{0};", m);
    body_.close();
    // -infinity has no difference from itself.
    body_.line("const float v{0}_base = v{0}_seen == -infinity() ? 0.0 : v{0}_seen;", m);
  }
  body_.open("{}for (int e = 0; e < {}; ++e) {{", width_ > 1 ? "[[unroll]] " : "", width_);
  for (const std::uint16_t m : maxima_) body_.line("const float v{0}_difference = v{0}_x[e] - v{0}_base;", m);
  for (const OnlineSum& s : sums_) {
    if (s.picks) {
      body_.line("v{0} += v{0}_picked[e] ? v{1}_difference : v{0}_other[e];", s.sum, s.maximum);
      body_.line("v{0}_number += v{0}_picked[e] ? 1.0 : 0.0;", s.sum);
    } else {
      body_.line("v{} += f_exp(v{}_difference);", s.sum, s.maximum);
    }
  }
  body_.close();
  // As other sums: in blocks, so that a long one loses little.
  body_.open("if ((++groups & {}u) == 0u) {{", std::max(256 / width_, 1) - 1);
  for (const OnlineSum& s : sums_) {
    if (s.picks) continue;
    body_.line("v{0}_blocks += v{0};", s.sum);
    body_.line("v{0} = 0.0;", s.sum);
  }
  body_.close();
}

void GlslOnline::finish() {
  for (const OnlineSum& s : sums_) {
    body_.open("if (v{0} != v{0}_seen) {{", s.maximum);
    rescale(s);
    body_.close();
    if (s.picks)
      body_.line("if (v{}_number != 0.0 && v{} == -infinity()) v{} = quiet_nan();", s.sum, s.maximum, s.sum);
    else
      body_.line("v{0} += v{0}_blocks;", s.sum);
  }
}

void GlslOnline::settle() {
  for (const OnlineSum& s : sums_) {
    if (!s.picks)
      body_.line(
          "if (reduced > 0u && (floatBitsToUint(v{}) & 0x7fffffffu) >= 0x7f800000u) v{} = quiet_nan();",
          s.maximum, s.sum);
  }
}

}  // namespace caldera
