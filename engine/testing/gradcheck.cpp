#include "engine/testing/gradcheck.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <random>

#include "engine/autodiff/autodiff.h"
#include "engine/autodiff/jvp.h"
#include "engine/autodiff/trace_scope.h"
#include "engine/testing/steady_function.h"
#include "ops/core/cast.h"

namespace caldera::testing {
namespace {

using Numbers = std::vector<double>;
using Tensors = std::vector<LazyTensor>;

/// Cotangents and tangents are made of this instead of 1, and what comes of them is divided by it: a rule
/// that rounds them to whole numbers, takes their absolute value or squares them is right for 0 and 1. All
/// floating types hold it exactly.
constexpr double kUnit = -79.0 / 128;

LazyTensor tensor_of(const Numbers& values, const LazyTensor& like) {
  return LazyTensor::from_vector(values, like.shape(), like.device());
}

Numbers times(double factor, Numbers values) {
  for (double& x : values) x *= factor;
  return values;
}

Numbers unit(std::size_t count, std::size_t element) {
  Numbers out(count);
  out[element] = 1;
  return out;
}

/// Evaluated together, in f64.
std::vector<Numbers> numbers_of(Tensors tensors) {
  for (LazyTensor& x : tensors) x = astype(x, DType::f64);
  eval(tensors);
  std::vector<Numbers> out;
  for (const LazyTensor& x : tensors) out.push_back(x.to_vector<double>());
  return out;
}

/// What `differentiate` makes. That it cannot is a check that fails.
template <class Differentiate>
Tensors derivatives(const char* mode, const Differentiate& differentiate) {
  try {
    return differentiate();
  } catch (const Error& error) {
    throw CheckFailed(fmt::format("{}: there is no derivative: {}", mode, error.what()));
  }
}

void check_arguments(std::string_view caller, std::span<const LazyTensor> inputs,
                     const GradcheckOptions& options) {
  if (!(options.eps > 0)) {
    throw ValueError(
        fmt::format("{}: eps is {}; the step of the differences must be above 0", caller, options.eps));
  }
  bool any = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) throw ValueError(fmt::format("{}: input {} is an empty tensor", caller, i));
    if (!is_floating(inputs[i].dtype())) continue;
    if (inputs[i].dtype() != DType::f64) {
      throw DTypeError(fmt::format("{}: input {} of shape {} is {}; central differences need float64", caller,
                                   i, inputs[i].shape().to_string(), name(inputs[i].dtype())));
    }
    any = true;
  }
  if (any) return;
  throw ValueError(
      fmt::format("{}: none of the {} inputs is floating, so there is no derivative to check; pass at least "
                  "one of float64",
                  caller, inputs.size()));
}

/// An input or result of the function, as messages name it.
struct Place {
  const char* what;
  std::size_t position;
  Shape shape;

  std::size_t count() const { return static_cast<std::size_t>(shape.numel()); }
  std::string whole() const { return fmt::format("{} {} (shape {})", what, position, shape.to_string()); }
  std::string element(std::size_t e) const {
    return fmt::format("{} {} (element {} of shape {})", what, position, e, shape.to_string());
  }
};

std::vector<Place> places_of(const char* what, const Floating& floating) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < floating.positions.size(); ++i) {
    places.push_back({what, floating.positions[i], floating.tensors[i].shape()});
  }
  return places;
}

class Checker {
 public:
  Checker(SteadyFunction function, std::span<const LazyTensor> inputs, const GradcheckOptions& options)
      : function_(std::move(function)),
        options_(options),
        arguments_(inputs.begin(), inputs.end()),
        inputs_(places_of("input", Floating(inputs))),
        point_(numbers_of(Floating(inputs).tensors)),
        random_(options.seed) {}

  GradcheckResult run() {
    try {
      check_values();
      for (std::size_t k = 0; k < outputs_.size(); ++k) {
        options_.fast ? check_projection(k) : check_elements(k);
      }
    } catch (const CheckFailed& failed) {
      return {false, failed.what()};
    }
    return {};
  }

 private:
  // ---- the function and its derivatives

  /// The inputs, with these values of the floating ones. Leaves of their own: what was given may have a
  /// history that the function must not see.
  Tensors leaves(const std::vector<Numbers>& values) const {
    Tensors all = arguments_;
    for (std::size_t i = 0; i < values.size(); ++i) {
      LazyTensor& argument = all[inputs_[i].position];
      argument = tensor_of(values[i], argument);
    }
    return all;
  }

  /// One call for derivatives, which may evaluate inside. A call for each keeps what the trace holds small.
  struct Traced {
    Traced(Checker& checker, std::size_t k) {
      const Tensors arguments = scope.traced(checker.leaves(checker.point_));
      variables = Floating(arguments).tensors;
      output = checker.function_(arguments).tensors[k];
    }
    const TraceScope scope;
    Tensors variables;
    LazyTensor output;
  };

  /// The cotangent of output `k` pulled back to every input.
  std::vector<Numbers> pulled(std::size_t k, const Numbers& cotangent) {
    const Traced traced(*this, k);
    const LazyTensor g = astype(tensor_of(times(kUnit, cotangent), traced.output), traced.output.dtype());
    std::vector<Numbers> out = numbers_of(derivatives("reverse mode", [&] {
      return vjp({&traced.output, 1}, traced.variables, {&g, 1});
    }));
    for (Numbers& numbers : out) numbers = times(1 / kUnit, numbers);
    return out;
  }

  /// The tangent of output `k` along a direction of input `i`.
  Numbers pushed(std::size_t k, std::size_t i, const Numbers& direction) {
    const Traced traced(*this, k);
    Tensors tangents(traced.variables.size());
    for (std::size_t n = 0; n < tangents.size(); ++n) {
      const Numbers along = n == i ? times(kUnit, direction) : Numbers(inputs_[n].count());
      tangents[n] = tensor_of(along, traced.variables[n]);
    }
    const Tensors out = derivatives("forward mode", [&] {
      return jvp({&traced.output, 1}, traced.variables, tangents);
    });
    return times(1 / kUnit, numbers_of(out)[0]);
  }

  Numbers moved(std::size_t k, std::size_t i, const Numbers& direction, double step) {
    std::vector<Numbers> values = point_;
    for (std::size_t e = 0; e < direction.size(); ++e) values[i][e] += step * direction[e];
    return numbers_of({function_(leaves(values)).tensors[k]})[0];
  }

  /// The same by central differences.
  Numbers difference(std::size_t k, std::size_t i, const Numbers& direction) {
    const Numbers above = moved(k, i, direction, options_.eps);
    const Numbers below = moved(k, i, direction, -options_.eps);
    Numbers out(above.size());
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = (above[e] - below[e]) / (2 * options_.eps);
    return out;
  }

  // ---- comparisons

  bool same(double first, double again) const {
    return first == again || (std::isnan(first) && std::isnan(again)) ||
           std::abs(first - again) <= options_.nondet_tol;
  }

  /// False for NaN, and for what is infinite on one side alone: its tolerance would be infinite too.
  bool close(double analytical, double numerical) const {
    if (analytical == numerical) return true;
    return std::isfinite(numerical) &&
           std::abs(analytical - numerical) <= options_.atol + options_.rtol * std::abs(numerical);
  }

  [[noreturn]] static void differ(const std::string& derivative, double analytical, double numerical) {
    throw CheckFailed(
        fmt::format("{} is {:.10g}, central differences give {:.10g}", derivative, analytical, numerical));
  }

  void check_values() {
    const Floating first = function_(leaves(point_)), again = function_(leaves(point_));
    outputs_ = places_of("output", first);
    check_same("", outputs_, numbers_of(first.tensors), numbers_of(again.tensors));
  }

  std::vector<Numbers> pulled_twice(std::size_t k, const Numbers& cotangent) {
    std::vector<Numbers> first = pulled(k, cotangent);
    check_same("the gradient of ", inputs_, first, pulled(k, cotangent));
    return first;
  }

  void check_same(const char* what, const std::vector<Place>& places, const std::vector<Numbers>& first,
                  const std::vector<Numbers>& again) const {
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (std::size_t e = 0; e < first[i].size(); ++e) {
        if (same(first[i][e], again[i][e])) continue;
        throw CheckFailed(
            fmt::format("the function is not deterministic: {}{} is {} and {} in two runs with "
                        "the same inputs",
                        what, places[i].element(e), first[i][e], again[i][e]));
      }
    }
  }

  void check_elements(std::size_t k) {
    const std::size_t count = outputs_[k].count();
    std::vector<std::vector<Numbers>> rows;
    for (std::size_t o = 0; o < count; ++o) rows.push_back(pulled_twice(k, unit(count, o)));
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      for (std::size_t e = 0; e < inputs_[i].count(); ++e) {
        const Numbers direction = unit(inputs_[i].count(), e);
        const Numbers numerical = difference(k, i, direction);
        const Numbers forward = options_.forward ? pushed(k, i, direction) : Numbers();
        for (std::size_t o = 0; o < count; ++o) {
          const auto derivative = [&] {
            return fmt::format("the derivative of {} by {}", outputs_[k].element(o), inputs_[i].element(e));
          };
          if (!close(rows[o][i][e], numerical[o])) differ(derivative(), rows[o][i][e], numerical[o]);
          if (options_.forward && !close(forward[o], numerical[o])) {
            differ("forward mode: " + derivative(), forward[o], numerical[o]);
          }
        }
      }
    }
  }

  void check_projection(std::size_t k) {
    const Numbers v = random_unit(outputs_[k].count());
    const std::vector<Numbers> grads = pulled_twice(k, v);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Numbers u = random_unit(inputs_[i].count());
      const double numerical = dot(difference(k, i, u), v);
      const auto derivative = [&] {
        return fmt::format(
            "the Jacobian of {} by {}, projected on random directions (without `fast` the "
            "element is named),",
            outputs_[k].whole(), inputs_[i].whole());
      };
      const double reverse = dot(grads[i], u);
      if (!close(reverse, numerical)) differ(derivative(), reverse, numerical);
      if (!options_.forward) continue;
      const double forward = dot(pushed(k, i, u), v);
      if (!close(forward, numerical)) differ("forward mode: " + derivative(), forward, numerical);
    }
  }

  static double dot(const Numbers& a, const Numbers& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  }

  Numbers random_unit(std::size_t count) {
    std::normal_distribution<double> normal;
    Numbers out(count);
    for (double& x : out) x = normal(random_);
    return times(1 / std::sqrt(dot(out, out)), out);
  }

  SteadyFunction function_;
  const GradcheckOptions& options_;
  Tensors arguments_;
  std::vector<Place> inputs_, outputs_;  // the floating ones
  std::vector<Numbers> point_;           // values of the floating inputs
  std::mt19937_64 random_;
};

GradcheckResult checked(const char* caller, const VectorFunction& function,
                        std::span<const LazyTensor> inputs, const GradcheckOptions& options) {
  return Checker(SteadyFunction(function, caller), inputs, options).run();
}

}  // namespace

VectorFunction CheckedFunction::of_one_tensor(UnaryFunction function) {
  return [function = std::move(function)](std::span<const LazyTensor> arguments) {
    if (arguments.size() != 1) {
      throw ValueError(
          fmt::format("gradcheck: a function of one tensor is given {} inputs", arguments.size()));
    }
    return Tensors{function(arguments[0])};
  };
}

GradcheckResult gradcheck(const CheckedFunction& function, std::span<const LazyTensor> inputs,
                          const GradcheckOptions& options) {
  check_arguments("gradcheck", inputs, options);
  return checked("gradcheck", function.on_lists(), inputs, options);
}

GradcheckResult gradgradcheck(const CheckedFunction& function, std::span<const LazyTensor> inputs,
                              const GradcheckOptions& options) {
  const char* const caller = "gradgradcheck";
  check_arguments(caller, inputs, options);
  const std::size_t count = inputs.size();
  SteadyFunction steady(function.on_lists(), caller);
  Tensors all(inputs.begin(), inputs.end());
  std::mt19937_64 random(options.seed + 1);
  std::normal_distribution<double> normal;
  for (const LazyTensor& result : steady(inputs).tensors) {
    Numbers values(static_cast<std::size_t>(result.numel()));
    for (double& x : values) x = normal(random);
    all.push_back(tensor_of(values, result));
  }
  const VectorFunction gradient = [&steady, count](std::span<const LazyTensor> arguments) {
    const TraceScope scope;
    const Tensors primals = scope.traced(arguments.first(count));
    const Floating outputs = steady(primals);
    Tensors cotangents;
    for (std::size_t i = 0; i < outputs.tensors.size(); ++i) {
      cotangents.push_back(astype(arguments[count + i], outputs.tensors[i].dtype()));
    }
    return derivatives("reverse mode",
                       [&] { return vjp(outputs.tensors, Floating(primals).tensors, cotangents); });
  };
  GradcheckResult result = checked(caller, gradient, all, options);
  if (!result) {
    result.message = fmt::format(
        "second derivative (each output is the gradient by an input; inputs from {} "
        "on are cotangents): {}",
        count, result.message);
  }
  return result;
}

GradcheckResult gradcheck(const CheckedFunction& function, std::initializer_list<LazyTensor> inputs,
                          const GradcheckOptions& options) {
  return gradcheck(function, std::span(inputs.begin(), inputs.size()), options);
}

GradcheckResult gradcheck(const CheckedFunction& function, const LazyTensor& input,
                          const GradcheckOptions& options) {
  return gradcheck(function, std::span(&input, 1), options);
}

GradcheckResult gradgradcheck(const CheckedFunction& function, std::initializer_list<LazyTensor> inputs,
                              const GradcheckOptions& options) {
  return gradgradcheck(function, std::span(inputs.begin(), inputs.size()), options);
}

GradcheckResult gradgradcheck(const CheckedFunction& function, const LazyTensor& input,
                              const GradcheckOptions& options) {
  return gradgradcheck(function, std::span(&input, 1), options);
}

}  // namespace caldera::testing
