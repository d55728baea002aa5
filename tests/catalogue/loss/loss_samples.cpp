#include "tests/catalogue/loss/loss_samples.h"

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace caldera::catalogue {

Reduction reduction_of(const Arguments& arguments) {
  const std::string text = arguments.text("reduction", "mean");
  if (text == "mean") return Reduction::mean;
  if (text == "sum") return Reduction::sum;
  if (text == "none") return Reduction::none;
  if (text == "batchmean") return Reduction::batchmean;
  throw ValueError(fmt::format("reduction is '{}'; want mean, sum, none or batchmean", text));
}

namespace {

Sample pair(const Operation& op, const Shape& a, const Shape& b, Arguments arguments, const char* reduction) {
  if (std::string_view(reduction) != "mean") arguments.set("reduction", std::string(reduction));
  return {{{a, op.ranges[0]}, {b, op.ranges[1]}}, std::move(arguments)};
}

}  // namespace

std::vector<Sample> unbroadcast_loss_samples(const Operation& op, const std::vector<Arguments>& variants) {
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{33}, Shape{}, Shape{1}, Shape{2, 3, 4}})
    out.push_back(pair(op, shape, shape, {}, "mean"));
  for (const char* reduction : {"sum", "none", "batchmean"})
    out.push_back(pair(op, {2, 3}, {2, 3}, {}, reduction));
  for (const char* reduction : {"none", "sum"}) out.push_back(pair(op, {0, 3}, {0, 3}, {}, reduction));
  for (const Arguments& variant : variants) {
    out.push_back(pair(op, {7}, {7}, variant, "mean"));
    out.push_back(pair(op, {3, 5}, {3, 5}, variant, "sum"));
    out.push_back(pair(op, {2, 1, 5}, {2, 1, 5}, variant, "none"));
  }
  return out;
}

std::vector<Sample> loss_samples(const Operation& op, const std::vector<Arguments>& variants) {
  std::vector<Sample> out = unbroadcast_loss_samples(op, variants);
  out.push_back(pair(op, {2, 3}, {3}, {}, "mean"));
  out.push_back(pair(op, {2, 1}, {1, 3}, {}, "none"));
  out.push_back(pair(op, {}, {7}, {}, "sum"));
  return out;
}

std::vector<ErrorSample> loss_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4}}}, .mentions = "(2, 3)"},
          {.refusal = Refusal::shape, .operands = {{{0}}, {{2}}}, .mentions = "(0,)"}};
}

}  // namespace caldera::catalogue
