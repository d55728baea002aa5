// Entries of the family `signal`. Complex operands and results have a last axis of 2.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

/// Operands: a signal or spectra, and a window if there are two.
StftOptions options_of(Tensors x, const Arguments& a) {
  StftOptions options{
      .n_fft = a.integer("n_fft", 4),
      .center = a.flag("center", true),
      .pad_mode = a.text("pad_mode", "reflect") == "reflect" ? PadMode::reflect : PadMode::constant,
      .normalized = a.flag("normalized", false),
      .onesided = a.flag("onesided", true)};
  if (a.has("hop_length")) options.hop_length = a.integer("hop_length", 1);
  if (a.has("win_length")) options.win_length = a.integer("win_length", 1);
  if (x.size() > 1) options.window = x[1];
  return options;
}
Results call_stft(Tensors x, const Arguments& a) { return {view_as_real(stft(x[0], options_of(x, a)))}; }
Results call_istft(Tensors x, const Arguments& a) {
  std::optional<std::int64_t> length;
  if (a.has("length")) length = a.integer("length", 1);
  return {istft(view_as_complex(x[0]), options_of(x, a), length)};
}

const Range kWindow{.low = 0.25, .high = 1.5};

std::vector<Sample> stft_samples(const Operation&) {
  const std::int64_t six = 6, eight = 8, two = 2, three = 3;
  return {{{{{11}}}, {{"n_fft", eight}}},
          {{{{2, 12}}, {{6}, kWindow}}, {{"n_fft", six}, {"hop_length", two}}},
          {{{{9}}, {{4}, kWindow}},
           {{"n_fft", six}, {"hop_length", three}, {"win_length", std::int64_t{4}}, {"normalized", true}}},
          {{{{12}}, {{8}, kWindow}},
           {{"n_fft", eight}, {"hop_length", three}, {"center", false}, {"onesided", false}}},
          {{{{9}}, {{6}, kWindow}}, {{"n_fft", six}, {"pad_mode", std::string("constant")}}}};
}
std::vector<ErrorSample> stft_errors(const Operation&) {
  const std::int64_t eight = 8;
  return {{Refusal::shape, {{{3}}}, {{"n_fft", eight}}, "(3,)"},
          {Refusal::shape, {{{3}}}, {{"n_fft", eight}, {"center", false}}, "(3,)"},
          {Refusal::shape, {{{30}}, {{5}}}, {{"n_fft", eight}}, "(5,)"},
          {Refusal::value, {{{30}}}, {{"n_fft", eight}, {"hop_length", std::int64_t{0}}}, "hop_length 0"},
          {Refusal::value, {{{30}}}, {{"n_fft", eight}, {"win_length", std::int64_t{9}}}, "win_length 9"}};
}

std::vector<Sample> istft_samples(const Operation&) {
  const std::int64_t six = 6, eight = 8, two = 2, three = 3;
  return {
      {{{{5, 4, 2}}}, {{"n_fft", eight}}},
      {{{{2, 4, 5, 2}}, {{6}, kWindow}}, {{"n_fft", six}, {"hop_length", two}, {"length", std::int64_t{7}}}},
      {{{{4, 4, 2}}, {{4}, kWindow}},
       {{"n_fft", six}, {"hop_length", three}, {"win_length", std::int64_t{4}}, {"normalized", true}}},
      {{{{8, 3, 2}}, {{8}, kWindow}},
       {{"n_fft", eight}, {"hop_length", three}, {"center", false}, {"onesided", false}}}};
}
std::vector<ErrorSample> istft_errors(const Operation&) {
  return {{Refusal::shape, {{{4, 3, 2}}}, {{"n_fft", std::int64_t{8}}}, "(4, 3)"},
          {Refusal::shape, {{{5, 2}}}, {{"n_fft", std::int64_t{8}}}, "(5,)"},
          {Refusal::value,
           {{{5, 3, 2}}},
           {{"n_fft", std::int64_t{8}}, {"length", std::int64_t{-1}}},
           "length of -1"}};
}

using Window = LazyTensor (*)(std::int64_t, bool, DType, std::optional<Device>);
template <Window F>
Results call_window(Tensors, const Arguments& a) {
  return {F(a.integer("n", 1), a.flag("periodic", true), a.dtype("dtype", DType::f32), {})};
}
std::vector<Sample> window_samples(const Operation& operation) {
  std::vector<Sample> out;
  for (const std::int64_t n : {0, 1, 2, 7, 12}) {
    for (const bool periodic : {true, false})
      out.push_back({{}, {{"n", n}, {"periodic", periodic}, {"dtype", n == 12 ? DType::f64 : DType::f32}}});
  }
  Arguments& last = out.back().arguments;
  if (operation.name == "hamming_window") {
    last.set("alpha", 0.5);
    last.set("beta", 0.25);
  }
  if (operation.name == "kaiser_window") last.set("beta", 3.5);
  return out;
}
std::vector<ErrorSample> window_errors(const Operation&) {
  return {{Refusal::value, {}, {{"n", std::int64_t{-1}}}, "-1 elements"},
          {Refusal::dtype, {}, {{"n", std::int64_t{2}}, {"dtype", DType::i32}}, "int32"}};
}

constexpr EntriesOf entry{.family = "signal", .types = kFloating};
constexpr EntriesOf window{.family = "signal",
                           .types = {},
                           .result = ResultType::argument,
                           .gradient = Gradient::none,
                           .samples = window_samples,
                           .errors = window_errors};

}  // namespace

std::span<const Operation> short_time_operations() {
  static const Operation kTable[] = {
      entry(
          "stft",
          "stft(x, {n_fft, hop_length=n_fft / 4, win_length=n_fft, window=none, center=true, "
          "pad_mode=reflect, "
          "normalized=false, onesided=true})",
          "Fourier transforms of frames of a signal (..., time) times a window: (..., frequencies, frames).",
          call_stft, stft_samples, stft_errors),
      entry("istft",
            "istft(x, {n_fft, hop_length=n_fft / 4, win_length=n_fft, window=none, center=true, "
            "normalized=false, "
            "onesided=true}, length=none)",
            "The inverse of stft: frames added up, over the sums of the windows' squares.", call_istft,
            istft_samples, istft_errors),
      window("hann_window", "hann_window(n, periodic=true, dtype=float32)", "1/2 - 1/2 cos(2 pi i / n).",
             call_window<caldera::hann_window>),
      window("hamming_window", "hamming_window(n, periodic=true, alpha=0.54, beta=0.46, dtype=float32)",
             "alpha - beta cos(2 pi i / n).",
             [](Tensors, const Arguments& a) -> Results {
               return {hamming_window(a.integer("n", 1), a.flag("periodic", true), a.real("alpha", 0.54),
                                      a.real("beta", 0.46), a.dtype("dtype", DType::f32))};
             }),
      window("blackman_window", "blackman_window(n, periodic=true, dtype=float32)",
             "0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n).", call_window<caldera::blackman_window>),
      window("bartlett_window", "bartlett_window(n, periodic=true, dtype=float32)",
             "1 at the middle, falling to 0 at both ends.", call_window<caldera::bartlett_window>),
      window("kaiser_window", "kaiser_window(n, periodic=true, beta=12, dtype=float32)",
             "I0(beta sqrt(1 - r^2)) / I0(beta), r from -1 to 1.",
             [](Tensors, const Arguments& a) -> Results {
               return {kaiser_window(a.integer("n", 1), a.flag("periodic", true), a.real("beta", 12),
                                     a.dtype("dtype", DType::f32))};
             }),
  };
  return kTable;
}

}  // namespace caldera::catalogue
