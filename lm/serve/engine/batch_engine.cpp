#include "lm/serve/engine/batch_engine.h"

#include <fmt/format.h>

#include <chrono>

namespace caldera::serve {
namespace {

constexpr std::int64_t kLongestStep = 600;  // seconds

std::int64_t now_in_milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

BatchEngine::BatchEngine(BatchGenerator& generator, std::int64_t context)
    : generator_(generator), context_(context), thread_([this] { work(); }) {}

BatchEngine::~BatchEngine() {
  stopping_ = true;
  thread_.join();
}

void BatchEngine::work() {
  constexpr double kSeconds = 0.1;  // how soon a stop is seen
  while (!stopping_) {
    if (!generator_.wait(kSeconds)) continue;
    step_began_ = now_in_milliseconds();
    generator_.step();
    step_began_ = 0;
  }
}

std::string BatchEngine::failure() const {
  if (const std::optional<std::string> why = generator_.failure()) return "the device has failed: " + *why;
  const std::int64_t began = step_began_;
  const std::int64_t seconds = began == 0 ? 0 : (now_in_milliseconds() - began) / 1000;
  return seconds < kLongestStep ? std::string() : fmt::format("a step has taken {} seconds", seconds);
}

}  // namespace caldera::serve
