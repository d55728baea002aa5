// compiled: a function that is traced once and replayed with new inputs after that. A call costs the host
// less than 60 ns an argument, some 200 ns a result and half a microsecond, however many operations the
// function has: no graph is built, walked or hashed.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/autodiff/function.h"

namespace caldera {

struct CompiledOptions {
  /// Arguments (counted from 0) whose memory results may take, where nobody else holds them at the call: no
  /// other handle, graph or history. (A list in braces, `f(std::vector{x, y})`, holds second handles for as
  /// long as the call lasts: keep the arguments in a vector.) After such a call the caller's handle has no
  /// value any more: using it is a ValueError, so bind it to the result. What somebody else holds is left
  /// alone, and on a GPU what is still being computed (read a result of each step, as loops that print a loss
  /// do). No memory is given where the plan may fail for what its inputs are (a factorisation).
  std::vector<std::size_t> donate = {};
  /// Traces that are kept, one for each combination of shapes and the like; what was used longest ago goes.
  std::size_t most_traces = 64;
};

/// The function, called once for each combination of shapes, dtypes and devices of its arguments (and of
/// fusion, the default device, and the opening of its device), on stand-ins without values. The graph that it
/// builds is kept with its plan; later calls replay that on new values.
///
/// A call evaluates arguments that are lazy, all together; then it schedules the plan and gives results that
/// have values: on the CPU they are computed when the call returns, on a GPU they are pending, as those of
/// eval_async are. A failure on the CPU is thrown by the call; one on a GPU wherever a result is asked for.
/// In both cases the arguments stay as they were.
///
/// - C++ numbers are arguments like tensors, and new ones are no reason to trace again. The few operations
///   that need a number to build their graph (the probability of random_bernoulli) make the trace one for
///   that number.
/// - What the function captures is a constant of the trace: tensors by reference to their values, lazy ones
///   evaluated at the trace. Binding a captured variable to another tensor is not seen, and other side
///   effects, such as drawing from the global generator, happen at the trace alone. Pass as an argument what
///   changes.
/// - Evaluating what depends on an argument inside of the function is a ValueError.
/// - A result may be an argument or a captured tensor, which is given back as it is, and one tensor may be
///   several results. All that is computed is on one device (ValueError otherwise; move arguments before
///   the call and results after it).
/// - Called inside of another transform, with arguments of that, it is the function itself: grad, jvp, vmap
///   and compiled pass through it, and it through them.
/// - Results keep no history. A gradient that would have to pass a result to an argument is a GradientError:
///   differentiate inside, as compiled() of a function that calls value_and_grad() does. Beside other
///   parameters a result is a constant.
///
/// An empty function, argument or result is a ValueError, as is an argument to donate that is not there. What
/// is returned may be copied (copies share their traces) and called from any thread, if `function` may: two
/// threads that are the first with some shapes may both trace. Plans are those of the plan cache, within its
/// bounds; one that was dropped is made again from the trace.
VectorFunction compiled(VectorFunction function, CompiledOptions options = {});
TensorFunction compiled(TensorFunction function, CompiledOptions options = {});
UnaryFunction compiled(UnaryFunction function, CompiledOptions options = {});

}  // namespace caldera
