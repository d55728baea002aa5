#include "lm/serve/engine/batch_engine.h"

namespace caldera::serve {

BatchEngine::BatchEngine(BatchGenerator& generator, std::int64_t context)
    : generator_(generator), context_(context), thread_([this] { work(); }) {}

BatchEngine::~BatchEngine() {
  stopping_ = true;
  thread_.join();
}

void BatchEngine::work() {
  constexpr double kSeconds = 0.1;  // how soon a stop is seen
  while (!stopping_) {
    if (generator_.wait(kSeconds)) generator_.step();
  }
}

}  // namespace caldera::serve
