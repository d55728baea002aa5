#include "engine/runtime/job_inputs.h"

#include <bit>
#include <type_traits>

#include "engine/base/error.h"
#include "engine/graph/tracing/tracing.h"
#include "engine/tensor/dispatch.h"

namespace caldera {

std::shared_ptr<Job> new_job() {
  auto job = std::make_shared<Job>();
  job->done = std::make_shared<Event>();
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
