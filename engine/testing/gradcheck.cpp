#include "engine/testing/gradcheck.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "engine/autodiff/autodiff.h"
#include "engine/autodiff/jvp.h"

namespace caldera::testing {
namespace {

using Numbers = std::vector<double>;

/// The floating tensors of a list.
struct Floating {
  std::vector<std::size_t> positions;
  std::vector<LazyTensor> tensors;

  explicit Floating(std::span<const LazyTensor> all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!is_floating(all[i].dtype())) continue;
      positions.push_back(i);
      tensors.push_back(all[i]);
    }
  }
};

LazyTensor tensor_of(const Numbers& values, const LazyTensor& like) {
  return LazyTensor::from_vector(values, like.shape(), like.device());
}

class Checker {
 public:
  Checker(const VectorFunction& function, std::span<const LazyTensor> inputs, const GradcheckOptions& options)
      : function_(function),
        options_(options),
        inputs_(inputs.begin(), inputs.end()),
        varied_(inputs_),
        random_(options.seed) {
    for (const LazyTensor& x : varied_.tensors) {
      if (x.dtype() != DType::f64) {
        throw DTypeError(
            fmt::format("gradcheck: an input of shape {} is {}; central differences need float64",
                        x.shape().to_string(), name(x.dtype())));
      }
      values_.push_back(x.to_vector<double>());
    }
  }

  GradcheckResult run() {
    // Leaves of their own: an input may have a history that the function must not see.
    std::vector<LazyTensor> inputs = inputs_;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      inputs[varied_.positions[i]] = tensor_of(values_[i], varied_.tensors[i]);
    }
    std::vector<LazyTensor> variables;
    for (const std::size_t position : varied_.positions) variables.push_back(inputs[position]);
    const std::vector<LazyTensor> results = function_(inputs);
    const Floating outputs(results);
    for (std::size_t k = 0; k < outputs.tensors.size(); ++k) {
      GradcheckResult result =
          options_.fast ? check_projection(outputs, k, variables) : check_rows(outputs, k, variables);
      if (!result) return result;
    }
    return {};
  }

 private:
  using Gradients = std::vector<Numbers>;

  static Gradients pulled(const LazyTensor& output, const std::vector<LazyTensor>& variables,
                          const Numbers& cotangent) {
    const LazyTensor g = astype_of(tensor_of(cotangent, output), output.dtype());
    const std::vector<LazyTensor> grads = vjp({&output, 1}, variables, {&g, 1});
    Gradients out;
    for (const LazyTensor& grad : grads) out.push_back(grad.to_vector<double>());
    return out;
  }

  static LazyTensor astype_of(const LazyTensor& x, DType type) {
    return x.dtype() == type ? x : x.astype(type);
  }

  /// The results at the inputs moved by `step` times `direction` of input `i`.
  Numbers moved(std::size_t i, const Numbers& direction, double step, std::size_t output) {
    Numbers values = values_[i];
    for (std::size_t e = 0; e < values.size(); ++e) values[e] += step * direction[e];
    std::vector<LazyTensor> inputs = inputs_;
    for (std::size_t n = 0; n < values_.size(); ++n) {
      inputs[varied_.positions[n]] = tensor_of(n == i ? values : values_[n], varied_.tensors[n]);
    }
    const Floating outputs(function_(inputs));
    return astype_of(outputs.tensors[output], DType::f64).to_vector<double>();
  }

  /// J times `direction`, by central differences.
  Numbers difference(std::size_t i, const Numbers& direction, std::size_t output) {
    const Numbers above = moved(i, direction, options_.eps, output);
    const Numbers below = moved(i, direction, -options_.eps, output);
    Numbers out(above.size());
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = (above[e] - below[e]) / (2 * options_.eps);
    return out;
  }

  bool close(double analytical, double numerical) const {
    // Written so that NaN fails.
    return std::abs(analytical - numerical) <= options_.atol + options_.rtol * std::abs(numerical);
  }

  GradcheckResult repeated(const Gradients& first, const LazyTensor& output,
                           const std::vector<LazyTensor>& variables, const Numbers& cotangent) const {
    const Gradients again = pulled(output, variables, cotangent);
    for (std::size_t i = 0; i < first.size(); ++i) {
      for (std::size_t e = 0; e < first[i].size(); ++e) {
        if (std::abs(first[i][e] - again[i][e]) <= options_.nondet_tol) continue;
        if (std::isnan(first[i][e]) && std::isnan(again[i][e])) continue;  // found below
        return {false,
                fmt::format("the gradient of input {} is not deterministic: element {} is {} and {} in two "
                            "runs",
                            varied_.positions[i], e, first[i][e], again[i][e])};
      }
    }
    return {};
  }

  GradcheckResult check_rows(const Floating& outputs, std::size_t k,
                             const std::vector<LazyTensor>& variables) {
    const LazyTensor& output = outputs.tensors[k];
    const auto count = static_cast<std::size_t>(output.numel());
    std::vector<Gradients> rows;
    for (std::size_t o = 0; o < count; ++o) {
      Numbers unit(count);
      unit[o] = 1;
      rows.push_back(pulled(output, variables, unit));
      GradcheckResult same = repeated(rows.back(), output, variables, unit);
      if (!same) return same;
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      for (std::size_t e = 0; e < values_[i].size(); ++e) {
        Numbers unit(values_[i].size());
        unit[e] = 1;
        const Numbers column = difference(i, unit, k);
        if (options_.forward) {
          GradcheckResult forward = check_column(outputs, k, variables, i, unit, column);
          if (!forward) return forward;
        }
        for (std::size_t o = 0; o < count; ++o) {
          if (close(rows[o][i][e], column[o])) continue;
          return {
              false,
              fmt::format("the derivative of output {} (element {} of shape {}) by input {} (element {} of "
                          "shape {}) is {}, central differences give {}",
                          outputs.positions[k], o, output.shape().to_string(), varied_.positions[i], e,
                          variables[i].shape().to_string(), rows[o][i][e], column[o])};
        }
      }
    }
    return {};
  }

  /// J times `direction` of input `i` by forward mode, against what differences gave.
  GradcheckResult check_column(const Floating& outputs, std::size_t k,
                               const std::vector<LazyTensor>& variables, std::size_t i,
                               const Numbers& direction, const Numbers& numerical) const {
    std::vector<LazyTensor> tangents;
    for (std::size_t n = 0; n < variables.size(); ++n) {
      const Numbers zeros(values_[n].size());
      tangents.push_back(tensor_of(n == i ? direction : zeros, variables[n]));
    }
    const std::vector<LazyTensor> pushed = jvp(outputs.tensors, variables, tangents);
    const Numbers analytical = astype_of(pushed[k], DType::f64).to_vector<double>();
    for (std::size_t o = 0; o < analytical.size(); ++o) {
      if (close(analytical[o], numerical[o])) continue;
      return {
          false,
          fmt::format("forward mode: the derivative of output {} (element {} of shape {}) along a direction "
                      "of input {} (shape {}) is {}, central differences give {}",
                      outputs.positions[k], o, outputs.tensors[k].shape().to_string(), varied_.positions[i],
                      variables[i].shape().to_string(), analytical[o], numerical[o])};
    }
    return {};
  }

  Numbers random_unit(std::size_t count) {
    std::normal_distribution<double> normal;
    Numbers out(count);
    double squares = 0;
    for (double& x : out) {
      x = normal(random_);
      squares += x * x;
    }
    for (double& x : out) x /= std::sqrt(squares);
    return out;
  }

  GradcheckResult check_projection(const Floating& outputs, std::size_t k,
                                   const std::vector<LazyTensor>& variables) {
    const LazyTensor& output = outputs.tensors[k];
    const Numbers v = random_unit(static_cast<std::size_t>(output.numel()));
    const Gradients grads = pulled(output, variables, v);
    GradcheckResult same = repeated(grads, output, variables, v);
    if (!same) return same;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Numbers u = random_unit(values_[i].size());
      const Numbers column = difference(i, u, k);
      if (options_.forward) {
        GradcheckResult forward = check_column(outputs, k, variables, i, u, column);
        if (!forward) return forward;
      }
      double analytical = 0;
      double numerical = 0;
      for (std::size_t e = 0; e < u.size(); ++e) analytical += grads[i][e] * u[e];
      for (std::size_t o = 0; o < v.size(); ++o) numerical += column[o] * v[o];
      if (close(analytical, numerical)) continue;
      return {
          false,
          fmt::format("the Jacobian of output {} (shape {}) by input {} (shape {}), projected on random "
                      "directions, is {}, central differences give {}; without `fast` the element is named",
                      outputs.positions[k], output.shape().to_string(), varied_.positions[i],
                      variables[i].shape().to_string(), analytical, numerical)};
    }
    return {};
  }

  const VectorFunction& function_;
  const GradcheckOptions& options_;
  std::vector<LazyTensor> inputs_;
  Floating varied_;
  std::vector<Numbers> values_;
  std::mt19937_64 random_;
};

}  // namespace

GradcheckResult gradcheck(const VectorFunction& function, std::span<const LazyTensor> inputs,
                          const GradcheckOptions& options) {
  return Checker(function, inputs, options).run();
}

GradcheckResult gradgradcheck(const VectorFunction& function, std::span<const LazyTensor> inputs,
                              const GradcheckOptions& options) {
  const std::size_t count = inputs.size();
  std::vector<LazyTensor> all(inputs.begin(), inputs.end());
  std::mt19937_64 random(options.seed + 1);
  std::normal_distribution<double> normal;
  for (const LazyTensor& result : function(inputs)) {
    if (!is_floating(result.dtype())) continue;
    Numbers values(static_cast<std::size_t>(result.numel()));
    for (double& x : values) x = normal(random);
    all.push_back(tensor_of(values, result));
  }
  const VectorFunction gradient = [&function, count](std::span<const LazyTensor> arguments) {
    const std::span<const LazyTensor> primals = arguments.first(count);
    const Floating outputs(function(primals));
    std::vector<LazyTensor> cotangents;
    for (std::size_t i = 0; i < outputs.tensors.size(); ++i) {
      cotangents.push_back(arguments[count + i].astype(outputs.tensors[i].dtype()));
    }
    return vjp(outputs.tensors, Floating(primals).tensors, cotangents);
  };
  GradcheckResult result = gradcheck(gradient, all, options);
  if (!result) result.message = "second derivative: " + result.message;
  return result;
}

}  // namespace caldera::testing
