#include "engine/runtime/job_inputs.h"

#include <atomic>
#include <bit>
#include <type_traits>

#include "engine/base/error.h"
#include "engine/base/small_allocator.h"
#include "engine/graph/tracing/tracing.h"
#include "engine/tensor/dispatch.h"

namespace caldera {

namespace {

/// One that nobody holds any longer: programs that evaluate one thing after another need no more.
constinit std::atomic<Job*> spare_job{nullptr};

/// Keeps the job for the next evaluation, if it may.
struct Release {
  void operator()(Job* job) const noexcept {
    Job* none = nullptr;
    const bool is_kept =
        small_memory::kIsKept && job->renew() &&
        spare_job.compare_exchange_strong(none, job, std::memory_order_release, std::memory_order_relaxed);
    if (!is_kept) delete job;
  }
};

}  // namespace

std::shared_ptr<Job> new_job() {
  Job* spare = spare_job.exchange(nullptr, std::memory_order_acquire);
  if (spare == nullptr) spare = new Job;
  std::shared_ptr<Job> job(spare, Release(), SmallAllocator<Job>());
  job->done = make_small_shared<Event>();
  job->bindings.is_cancelled = &job->done->cancel_flag();
  return job;
}

std::uint64_t scalar_bits(std::int64_t raw, DType dtype) {
  // Arguments of kernels are of the type that is computed in: the value that the type itself holds.
  return dispatch(dtype, [&]<class T>() {
    if constexpr (sizeof(T) == 8)
      return static_cast<std::uint64_t>(raw);  // the bits of f64 too
    else if constexpr (std::is_integral_v<T>)
      return std::uint64_t{static_cast<std::uint32_t>(static_cast<T>(raw))};
    else
      return std::uint64_t{
          std::bit_cast<std::uint32_t>(to_number(to_element<T>(std::bit_cast<double>(raw))))};
  });
}

std::uint64_t scalar_bits(const Node& node) {
  if (is_argument_number(node)) throw ValueError(no_value_of_argument(node.op(), node.shape()));
  return scalar_bits(node.attributes()[0], node.dtype());
}

void depend_on(Job& job, const Node& leaf, const Value& value) {
  if (value.ready == nullptr || value.ready == job.done) return;
  if (!value.ready->is_set() || value.ready->error())
    job.depends.push_back(value.ready);
  else if (leaf.has_value())
    leaf.forget_event();
}

}  // namespace caldera
