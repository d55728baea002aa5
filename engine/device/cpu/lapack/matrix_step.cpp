#include "engine/device/cpu/lapack/matrix_step.h"

#include <bit>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <type_traits>

#include "engine/base/error.h"
#include "engine/device/cpu/host/openblas.h"
#include "engine/device/cpu/host/parallel.h"

namespace caldera::cpu {
namespace {

/// Work on one matrix from which the library's own threads, which have to be woken, are worth it; and from
/// which they are the better way for several matrices, too.
constexpr double kLibraryNanoseconds = 40e3, kLargeMatrixNanoseconds = 4e6;

/// The failure of the earliest matrix, whichever thread finds one first.
class FirstFailure {
 public:
  void note(std::int64_t matrix, std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    if (matrix >= matrix_) return;
    matrix_ = matrix;
    error_ = std::move(error);
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::int64_t matrix_ = std::numeric_limits<std::int64_t>::max();
  std::exception_ptr error_;
};

/// The number that a scalar argument's bits stand for.
template <class T>
double number_of(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  else
    return std::bit_cast<double>(bits);
}

}  // namespace

PreparedRoutine::PreparedRoutine(const Step& step, const LinalgStep& linalg)
    : type_(step.dtype), name_(step.label.empty() ? step.name() : step.label), count_(step.dims[0]) {
  for (int d = 1; d < 4; ++d) {
    if (step.dims[d] > std::numeric_limits<int>::max())
      throw ShapeError(name_ + ": a matrix of shape " + step.dims.to_string() +
                       " is larger than LAPACK can count");
  }
  problem_ = {.routine = linalg.routine,
              .option = linalg.option,
              .m = static_cast<int>(step.dims[1]),
              .n = static_cast<int>(step.dims[2]),
              .k = static_cast<int>(step.dims[3])};
  const auto place = [](const Operand& operand) {
    return Place{operand.buffer, operand.offset, operand.strides};
  };
  a_ = place(step.operands.front());
  if (has_right_side(problem_.routine)) b_ = place(step.operands[1]);
  out_ = place(step.operands.back());
  if (has_tolerance(problem_.routine)) tolerance_ = step.scalars[0];
  const double m = problem_.m, n = problem_.n;
  nanoseconds_ = 500 + 2 * m * n * (std::min(m, n) + problem_.k);
  if (type_ == DType::f32)
    lapack<float>();
  else
    lapack<double>();
}

template <class T>
void PreparedRoutine::run_typed(const RunContext& context) const {
  const auto base = [&](const Place& place) {
    return reinterpret_cast<T*>(context.buffers[static_cast<std::size_t>(place.buffer)]) + place.offset;
  };
  MatrixProblem problem = problem_;
  if (tolerance_ >= 0)
    problem.tolerance = number_of<T>(context.scalars[static_cast<std::size_t>(tolerance_)]);
  FirstFailure failure;
  const auto solve = [&](std::int64_t begin, std::int64_t end) {
    std::int64_t matrix = begin;
    try {  // nothing may leave a team of threads
      MatrixSolver<T> solver(problem);
      for (; matrix < end; ++matrix) {
        const StridedMatrix<T> a{base(a_) + matrix * a_.strides[0], a_.strides[1], a_.strides[2]};
        StridedMatrix<T> b;
        if (b_.buffer >= 0) b = {base(b_) + matrix * b_.strides[0], b_.strides[1], b_.strides[3]};
        const std::string why = solver.run(a, b, base(out_) + matrix * out_.strides[0]);
        if (why.empty()) continue;
        std::string which = name_ + ": the matrix ";
        if (count_ > 1)
          which.append(std::to_string(matrix))
              .append(" of the batch of ")
              .append(std::to_string(count_) + " ");
        throw ValueError(which + why);
      }
    } catch (...) {
      failure.note(matrix, std::current_exception());
    }
  };
  // Many small matrices: some to each thread. Few or large ones: the library's own threads.
  const bool spread = count_ > 1 && nanoseconds_ < kLargeMatrixNanoseconds;
  const int threads = spread ? threads_for(nanoseconds_ * static_cast<double>(count_), count_) : 1;
  std::optional<BlasThreads> inside;
  if (threads == 1 && !in_parallel()) inside.emplace(nanoseconds_ < kLibraryNanoseconds ? 1 : cpu_threads());
  parallel_ranges(count_, threads, solve);
  failure.rethrow();
}

void PreparedRoutine::run(const RunContext& context) const {
  if (count_ == 0) return;
  if (type_ == DType::f32)
    run_typed<float>(context);
  else
    run_typed<double>(context);
}

}  // namespace caldera::cpu
