#include "engine/device/vulkan/pipelines/pipeline.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

namespace caldera::vulkan {
namespace {

/// Threads that help to make pipelines now, in the whole process.
std::atomic<unsigned> helpers{0};

/// One more, if there is a core for it.
bool take_helper() {
  const unsigned most = std::max(1U, std::thread::hardware_concurrency()) - 1;
  unsigned now = helpers.load(std::memory_order_relaxed);
  do {
    if (now >= most) return false;
  } while (!helpers.compare_exchange_weak(now, now + 1, std::memory_order_relaxed));
  return true;
}

}  // namespace

Pipeline::~Pipeline() {
  if (made_ != VK_NULL_HANDLE) device_->vk().vkDestroyPipeline(device_->handle(), made_, nullptr);
}

void Pipeline::begin() {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::untouched) return;
    state_ = State::begun;
  }
  VkPipeline made = VK_NULL_HANDLE;
  std::exception_ptr error;
  try {
    made = make_();
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  made_ = made;
  error_ = std::move(error);
  state_ = error_ ? State::failed : State::made;
  make_ = nullptr;  // with the text of the shader
  changed_.notify_all();
}

VkPipeline Pipeline::handle() {
  begin();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return state_ == State::made || state_ == State::failed; });
  if (error_) std::rethrow_exception(error_);
  return made_;
}

bool Pipeline::has_failed() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::failed;
}

void make_side_by_side(const std::vector<PipelinePtr>& pipelines) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < pipelines.size(); i = next++) pipelines[i]->begin();
  };
  std::vector<std::thread> threads;
  while (threads.size() + 1 < pipelines.size() && take_helper()) {
    try {
      threads.emplace_back(work);
    } catch (const std::exception&) {  // those there are do it
      helpers.fetch_sub(1, std::memory_order_relaxed);
      break;
    }
  }
  work();
  for (std::thread& thread : threads) thread.join();
  helpers.fetch_sub(static_cast<unsigned>(threads.size()), std::memory_order_relaxed);
}

}  // namespace caldera::vulkan
