// One row of `caldera bench`: what is measured, what it must move and compute at the least, and what the peer
// does beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benches/yardstick.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera::bench {

/// The epsilon of norms, as Llama has it.
inline constexpr double kNormEps = 1e-5;

/// A case made ready: its inputs are on the device. One iteration either builds lazy outputs, which the
/// runner then evaluates and waits for, or does everything itself (`run`: eager calls, node building).
struct Work {
  /// The lazy outputs of one iteration. Timed.
  std::function<std::vector<LazyTensor>()> build;
  /// After an iteration's values are there: what makes the next one start from leaves. Timed.
  std::function<void()> finish;
  /// Instead of `build`: a whole iteration.
  std::function<void()> run;
  /// Before each iteration, not timed. Only for iterations that are long beside a clock's reading.
  std::function<void()> before;
  /// Bytes that an iteration reads and writes at the least, where that is known only now: instead of the
  /// case's.
  double bytes = 0;
  /// The file of the model that is run, for peers that read it too.
  std::string model_file;
  /// Another way to the same result, measured in turns with this one, and its name among the peers.
  std::function<void()> rival;
  std::string rival_name;
  /// Held while the case runs: settings that differ from the program's.
  std::shared_ptr<void> scope;
};

struct Case {
  std::string name;          // "ops/softmax/named/1024x1024": suite, what, how, size
  std::string shape;         // of the operands, for people
  DType dtype = DType::f32;  // of the result
  /// Every input read once and every output written once; and the arithmetic. 0: no such limit.
  double bytes = 0;
  double flops = 0;
  /// Operations in one iteration, where the time of one of them is what is asked for.
  int operations = 1;
  /// Counts the tokens of an iteration, where tokens a second are what is asked for, and what the rate is a
  /// share of. 0: none.
  double tokens = 0;
  Yardstick yardstick = Yardstick::none;
  /// Counts the threads of the CPU that it runs with; 0: as many as the program may use.
  int threads = 0;
  /// Whether it runs only where --filter asks for it.
  bool on_request = false;
  /// A fixed bound on the time of one iteration, from the project's aims; 0: none.
  double bound_us = 0;
  /// The ratio to the peer (to the rival, where the case has one) that the project aims at; 0: none.
  double aim_ratio = 0;
  /// Says what benches/torch_worker.py is asked to run; null: there is nothing to compare with.
  nlohmann::json peer;
  /// Says what llama-bench of llama.cpp is asked to run on the file that `make` makes: {"prompt"} tokens at
  /// once, or {"generate"} one by one behind {"depth"} others, with {"threads"}; null: nothing.
  nlohmann::json llama_bench;
  std::function<Work(Device)> make;
};

/// Holds the number of threads that kernels may use, while it lives.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

/// A leaf of normally distributed values, evaluated.
LazyTensor random_input(const Shape& shape, std::uint64_t seed, Device device, double scale = 1,
                        DType dtype = DType::f32);
/// "4x16x1024"
std::string dims_text(const Shape& shape);
/// A shape as the peer's request spells it.
nlohmann::json dims_json(const Shape& shape);
/// Bytes of that many elements.
constexpr double bytes_of(double elements, DType dtype) {
  return static_cast<double>(size_of(dtype)) * elements;
}
constexpr double f32_bytes(double elements) { return bytes_of(elements, DType::f32); }

/// The types that some cases are measured in beside f32.
inline constexpr DType kHalfTypes[] = {DType::f16, DType::bf16};
/// Returns what a case's name says of its type: "" of f32, the usual one; "/f16", "/bf16".
std::string type_suffix(DType dtype);

}  // namespace caldera::bench
