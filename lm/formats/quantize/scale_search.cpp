#include "lm/formats/quantize/scale_search.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace caldera::detail {
namespace {

/// What least squares needs of codes l, values x and weights w.
struct Sums {
  double w = 0, x = 0, l = 0, l2 = 0, xl = 0;
};

class Search {
 public:
  Search(std::span<const float> x, int most) : x_(x), most_(most), weights_(x.size()), codes_(x.size()) {
    double squares = 0;
    for (const float v : x) squares += static_cast<double>(v) * v;
    const double typical = std::sqrt(squares / static_cast<double>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) weights_[i] = typical + std::abs(x[i]);
  }

  ScaleAndMinimum run() {
    const auto [low, high] = std::ranges::minmax(x_);
    const double bottom = std::min(low, 0.0F);
    const double range = high - bottom;
    if (!(range > 0)) return {0, static_cast<float>(-bottom)};
    constexpr int kSteps = 24;
    for (int step = -kSteps / 2; step <= kSteps / 2; ++step) {
      double scale = range / (most_ + 0.1 * step);
      double minimum = -bottom;
      // Codes, then the best scale and minimum for them, and once more with what that gives.
      for (int round = 0; round < 3; ++round) {
        encode(scale, minimum);
        consider(scale, minimum);
        solve(scale, minimum);
        if (!(scale > 0)) break;
      }
    }
    return {static_cast<float>(best_scale_), static_cast<float>(best_minimum_)};
  }

 private:
  void encode(double scale, double minimum) {
    for (std::size_t i = 0; i < x_.size(); ++i)
      codes_[i] = std::clamp(std::nearbyint((x_[i] + minimum) / scale), 0.0, static_cast<double>(most_));
  }

  void consider(double scale, double minimum) {
    double error = 0;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const double off = scale * codes_[i] - minimum - x_[i];
      error += weights_[i] * off * off;
    }
    if (best_error_ >= 0 && error >= best_error_) return;
    best_error_ = error;
    best_scale_ = scale;
    best_minimum_ = minimum;
  }

  void solve(double& scale, double& minimum) const {
    Sums s;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      s.w += weights_[i];
      s.x += weights_[i] * x_[i];
      s.l += weights_[i] * codes_[i];
      s.l2 += weights_[i] * codes_[i] * codes_[i];
      s.xl += weights_[i] * x_[i] * codes_[i];
    }
    const double determinant = s.w * s.l2 - s.l * s.l;
    if (!(determinant > 0)) {
      scale = 0;
      return;
    }
    scale = (s.w * s.xl - s.x * s.l) / determinant;
    minimum = (s.l * s.xl - s.l2 * s.x) / determinant;
    if (minimum >= 0) return;
    minimum = 0;  // the format has no negative one
    scale = s.xl / s.l2;
  }

  std::span<const float> x_;
  int most_;
  std::vector<double> weights_;
  std::vector<double> codes_;
  double best_error_ = -1;
  double best_scale_ = 0;
  double best_minimum_ = 0;
};

}  // namespace

ScaleAndMinimum search_scale(std::span<const float> x, int most) { return Search(x, most).run(); }

}  // namespace caldera::detail
